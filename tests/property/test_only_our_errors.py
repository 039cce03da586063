"""Whatever is handed over, nothing is raised but our own errors, and each survives a process border."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.strategies import anything, json_objects, names, numbers, texts

from foreword import (
    AssembleContext,
    AssembledContext,
    AssembledSection,
    ForewordError,
    Placeholder,
    PromptAssembly,
    SystemPrompt,
    SystemPromptConfig,
    ToolProviderResult,
    ToolSchema,
    render,
    render_context_snapshot,
    render_prompt,
)


def either(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One of these, each as often; `one_of` would count every alternative inside them."""
    return st.sampled_from(range(len(strategies))).flatmap(lambda at: strategies[at])


odd_names = either(names, names, anything)
odd_texts = either(texts, texts, anything)
odd_orders = either(st.integers(-3, 3), numbers, anything)
conditions = either(st.none(), st.just(lambda context: True), st.just(lambda: True), anything)
fallbacks = either(st.sampled_from(("fail", "skip")), st.builds(Placeholder, odd_texts), anything)
timeouts = either(st.none(), st.sampled_from((0, -1, 0.001, 10**400, True)), anything)
tool_lists = either(st.none(), st.just(()), anything, st.lists(odd_names, max_size=2))


def provider_of(answer: Any, kind: str) -> Any:
    """A provider that gives this, in one of the ways there are."""

    async def later() -> Any:
        return answer

    async def in_context(context: AssembleContext) -> Any:
        return answer

    def awaitable() -> Any:
        return later()

    return {"plain": lambda: answer, "async": later, "context": in_context, "awaitable": awaitable}[kind]


kinds = st.sampled_from(("plain", "async", "context", "awaitable"))
values = either(texts, odd_texts, st.builds(provider_of, odd_texts, kinds), st.builds(provider_of, texts, kinds))


def tools_of(name: Any, description: Any, parameters: Any) -> Any:
    """A tool, where it can be made at all."""
    return attempt(lambda: ToolSchema(name, description, parameters)) or "no tool"


schemas = st.builds(tools_of, odd_names, odd_texts, either(json_objects, json_objects, anything))
results = either(
    anything,
    st.lists(st.one_of(schemas, schemas, anything), max_size=3),
    st.builds(ToolProviderResult, st.one_of(st.lists(schemas, max_size=3), anything), tool_lists),
)
tool_providers = either(results, st.builds(provider_of, results, kinds))


def attempt(call: Callable[[], Any]) -> Any:
    """Do something; what is refused must be refused by one of our errors."""
    try:
        return call()
    except ForewordError as error:
        assert_survives(error)
        return None


def assert_survives(error: ForewordError) -> None:
    """An error that crossed a process border is the same: kind, message, attributes, notes."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.kind, str(again), again.args) == (error.kind, str(error), error.args)
    assert vars(again) == vars(error)
    assert error.kind != "error"
    assert str(error)


@dataclass(frozen=True)
class Call:
    """A call of a view, most of it as it should be."""

    method: str
    positional: tuple[Any, ...]
    options: dict[str, Any]

    def on(self, view: SystemPrompt) -> Any:
        return getattr(view, self.method)(*self.positional, **self.options)


def one_or_two_of(**odd: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Options of which few are odd at a time, so that later checks are reached, too."""
    some = st.lists(st.sampled_from(sorted(odd)), max_size=2, unique=True)
    return some.flatmap(lambda chosen: st.fixed_dictionaries({name: odd[name] for name in chosen}))


variable_names = st.sampled_from(("a", "b", "ab"))
good_names = st.sampled_from(("n", "owner:name", "ä"))
common = {"when": conditions, "on_error": fallbacks, "timeout": timeouts}
text_calls = st.builds(
    lambda kind, name, value, options: Call(kind, (name, value), {"order": 1, **options}),
    st.sampled_from(("section", "context")),
    either(good_names, good_names, odd_names),
    values,
    one_or_two_of(**common, order=odd_orders, requires_tools=tool_lists),
)
variable_calls = st.builds(
    lambda name, value, options: Call("variable", (name, value), options),
    either(variable_names, variable_names, odd_names),
    either(st.none(), values, values),
    one_or_two_of(**common),
)
tool_calls = st.builds(
    lambda provider, options: Call("tools", (provider,), options), tool_providers, one_or_two_of(**common)
)
protections = st.builds(
    lambda options: Call("protect", (), options), one_or_two_of(sections=tool_lists, tools=tool_lists)
)
calls = either(text_calls, text_calls, text_calls, variable_calls, tool_calls, tool_calls, protections)
few_examples = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@few_examples
@given(st.lists(st.tuples(calls, st.booleans()), min_size=2, max_size=5), st.none() | values)
def test_registering_anything_and_rendering_raises_only_our_errors(made: list[tuple[Call, bool]], other: Any) -> None:
    """Names, texts, orders, options and answers of whatever type; and replacing them by anything."""
    prompt = SystemPrompt()
    scope = prompt.scope("scope")
    registrations = [attempt(lambda call=call, into=into: call.on(scope if into else prompt)) for call, into in made]
    attempt(prompt.render_sync)
    rendering = attempt(scope.render_sync)
    if rendering is not None:
        assert rendering.text == "".join(rendering.text[span.start : span.end] for span in rendering.spans)
        assert rendering.trace.to_json()
        assert rendering.digest
    for registration in registrations:
        if hasattr(registration, "replace"):
            attempt(lambda registration=registration: registration.replace(other))
        if registration is not None:
            registration.close()
    attempt(scope.render_sync)


@given(
    texts,
    st.dictionaries(st.sampled_from(("a", "b", "ab")), st.one_of(st.none(), texts, anything), max_size=3),
    st.booleans(),
)
@example("\x00\x1b[2J\u202e{{a.b}}", {}, False)
def test_rendering_anything_raises_only_our_errors(text: str, held: dict[str, Any], verbatim: bool) -> None:
    """Texts with control characters and lone surrogates; values that are no strings."""
    render_in_every_way(text, held, verbatim)


@pytest.mark.parametrize(("head", "tail"), [("{", "}"), ("{{", "}}"), ("{{", ""), ("", "}}"), ("{{{{", "}}}}")])
def test_heaps_of_nested_braces_raise_only_our_errors(head: str, tail: str) -> None:
    """However deep they are nested: nothing here recurses."""
    render_in_every_way(head * 50_000 + "a" + tail * 50_000, {"a": "x"}, False)


def render_in_every_way(text: str, held: dict[str, Any], verbatim: bool) -> None:
    assembly = PromptAssembly(
        [AssembledSection("s", text, verbatim=verbatim)], [AssembledContext("c", text, verbatim=verbatim)], (), held
    )
    for call in (render_prompt, render_context_snapshot, render):
        attempt(lambda call=call: call(assembly))


@given(names, names, names, texts)
def test_any_names_of_owners_scopes_sections_and_contexts_can_be_told(
    owner: str, scope: str, name: str, text: str
) -> None:
    """In references, traces and errors."""
    prompt = SystemPrompt()
    view = attempt(lambda: prompt.scope(scope))
    owned = None if view is None else attempt(lambda: view.owner(owner))
    if owned is None:
        return
    attempt(lambda: owned.section(name, text, order=1))
    attempt(lambda: owned.context(name, text, order=1))
    attempt(lambda: owned.section(name, text, order=1))
    attempt(lambda: prompt.protect(sections=[name]))
    rendering = attempt(owned.render_sync)
    if rendering is not None:
        assert all(str(event) for event in rendering.trace.events)
        assert rendering.missing(name) is None or str(rendering.missing(name))
    repr(owned)


entry_makers = st.one_of(
    anything,
    st.builds(lambda name, text: lambda kind: kind(name, text), odd_names, odd_texts),
)


@few_examples
@given(
    st.dictionaries(
        st.one_of(st.sampled_from(("a", "b")), anything.filter(lambda key: key.__hash__ is not None)),
        anything,
        max_size=2,
    ),
    st.lists(entry_makers, max_size=2),
    st.lists(st.one_of(schemas, anything), max_size=2),
    st.sampled_from(("before", "after", "never")),
    st.one_of(st.none(), anything),
)
def test_listeners_may_do_anything_and_only_our_errors_come_of_it(
    held: dict[Any, Any], entries: list[Any], tools: list[Any], calls_on: str, other: Any
) -> None:
    """Wrong values, entries that are none, tools that are none, answers that are no assembly."""

    async def listener(
        assembly: PromptAssembly, context: AssembleContext, call_next: Callable[[], Awaitable[PromptAssembly]]
    ) -> Any:
        if calls_on == "after":
            await call_next()
        assembly.variables.update(held)
        for kind, into in ((AssembledSection, assembly.sections), (AssembledContext, assembly.contexts)):
            into.extend(each(kind) if type(each).__name__ == "function" else each for each in entries)
        assembly.tools.extend(tools)
        if calls_on == "before":
            await call_next()
        return assembly if other is None else other

    prompt = SystemPrompt()
    prompt.section("s", "{{a}}", order=1)
    prompt.variable("a", "A")
    prompt.on_assemble(listener)
    rendering = attempt(prompt.render_sync)
    if rendering is not None:
        assert rendering.trace.to_json()
        assert rendering.spans is not None


config_fields = st.fixed_dictionaries(
    {},
    optional={
        "identity": odd_texts,
        "include_harness_identity": anything,
        "include_runtime_context": anything,
        "includeRuntimeContext": anything,
        "persona": odd_texts,
        "tool_order": tool_lists,
        "toolOrder": tool_lists,
        "section_ties": anything,
        "limits": anything,
        "nonsense": anything,
    },
)


@given(config_fields)
def test_any_configuration_loads_or_tells_its_faults(fields: dict[str, Any]) -> None:
    """And what loads renders, or tells why not."""
    config = attempt(lambda: SystemPromptConfig(**fields))
    if config is not None:
        assert repr(config)
        prompt = attempt(lambda: SystemPrompt(config))
        if prompt is not None:
            attempt(prompt.render_sync)


@given(odd_names, odd_texts, st.one_of(json_objects, anything))
def test_any_tool_is_made_or_refused(name: Any, description: Any, parameters: Any) -> None:
    """Whatever its name, description and parameters are."""
    attempt(lambda: ToolSchema(name, description, parameters))


@given(odd_names, odd_names)
def test_owners_and_scopes_of_any_name_are_made_or_refused(one: Any, other: Any) -> None:
    """Names that are no strings included."""
    prompt = SystemPrompt()
    attempt(lambda: prompt.owner(one))
    attempt(lambda: prompt.scope(one) and None)
    attempt(lambda: prompt.scope("of a name", parent=prompt.scope("above")).owner(other))
