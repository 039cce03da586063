"""Asking conditions and providers, and what becomes of their failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.short import facts, listener, names, reasons, tool

from foreword import (
    AssembleContext,
    AssemblyCancelledError,
    CancelToken,
    ContextKey,
    InvalidToolSchemaError,
    MissingContextValueError,
    ModelRef,
    MultipleCompleteSectionsError,
    NotAStringError,
    Placeholder,
    PromptLimits,
    PromptTooLargeError,
    ProviderFailedError,
    SystemPrompt,
)

Provider = Callable[..., Any]


def failing(message: str = "boom") -> Provider:
    def provider() -> Any:
        raise ValueError(message)

    return provider


def failing_async(message: str = "boom") -> Provider:
    async def provider() -> Any:
        raise ValueError(message)

    return provider


def register(view: SystemPrompt, kind: str, name: str, provider: Provider, **options: Any) -> None:
    if kind == "variable":
        view.variable(name, provider, **options)
    elif kind == "tools":
        view.tools(provider, **options)
    else:
        getattr(view, kind)(name, provider, order=1, **options)


KINDS = ["variable", "tools", "section", "context"]
DOORS = {"sync": failing, "async": failing_async}


# Failures


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_failure_names_its_provider_and_keeps_its_cause(kind: str, door: str) -> None:
    """A failing provider of any kind, sync or async, is told with kind, owner, scope and what it raised."""
    view = SystemPrompt().scope("agent").owner("plugin")
    register(view, kind, "x", DOORS[door]())
    with pytest.raises(ProviderFailedError) as caught:
        view.render_sync()
    error = caught.value
    (failure,) = error.failures
    assert failure.entry.kind == {"tools": "tool provider"}.get(kind, kind)
    assert (failure.entry.owner, failure.entry.scope) == ("plugin", "agent")
    assert (failure.kind, failure.error, failure.message) == ("provider_failed", "ValueError", "boom")
    assert error.kind == "provider_failed"
    assert isinstance(error.__cause__, ValueError)
    assert "of plugin in scope agent" in str(error)
    assert "ValueError: boom" in str(error)


@pytest.mark.parametrize("register_in", [KINDS, KINDS[::-1]], ids=["in order", "reversed"])
@pytest.mark.parametrize("door", DOORS)
def test_failures_are_told_together_in_a_fixed_order(register_in: list[str], door: str) -> None:
    """All failures come in one error: variables, tools, sections, contexts, each kind in its own order, whatever the
    order of registering."""
    prompt = SystemPrompt()
    for kind in register_in:
        for name in ("b", "a"):
            register(prompt.owner(name), kind, name, DOORS[door](f"{kind} {name}"))
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    error = caught.value
    order = [f"{kind} {name}" for kind in KINDS for name in ("b", "a")]
    assert [failure.message for failure in error.failures] == order
    assert isinstance(error.__cause__, ExceptionGroup)
    assert [str(each) for each in error.__cause__.exceptions] == order
    assert [str(error).index(message) for message in order] == sorted(str(error).index(message) for message in order)


def test_two_failures_are_two_though_one_is_async() -> None:
    """A failing sync provider does not keep an async one from being asked, nor the other way round."""
    prompt = SystemPrompt()
    prompt.context("c", failing("sync context"), order=1)
    prompt.section("s", failing_async("async section"), order=1)
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    assert [failure.message for failure in caught.value.failures] == ["async section", "sync context"]


def test_sections_fail_in_canonical_order() -> None:
    """Within sections and contexts failures are told in the order of the prompt, across layers."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    agent.section("first", failing("1"), order=1)
    prompt.section("third", failing("3"), order=3)
    prompt.section("second", failing("2"), order=2)
    with pytest.raises(ProviderFailedError) as caught:
        agent.render_sync()
    assert [failure.message for failure in caught.value.failures] == ["1", "2", "3"]


def test_a_failure_cancels_no_sibling() -> None:
    """Every other provider is asked all the same, so that all failures are known at once."""
    prompt = SystemPrompt()
    asked: list[str] = []

    def provider(name: str) -> Provider:
        return lambda: asked.append(name) or name

    async def later() -> str:
        asked.append("async")
        return "x"

    prompt.variable("v", failing())
    prompt.tools(lambda: asked.append("tools") or [])  # type: ignore[arg-type, return-value, func-returns-value]
    prompt.section("s", provider("section"), order=1)
    prompt.section("a", later, order=2)
    prompt.context("c", provider("context"), order=1)
    with pytest.raises(ProviderFailedError):
        prompt.render_sync()
    assert sorted(asked) == ["async", "context", "section", "tools"]


def test_after_a_failure_the_registry_is_as_it_was() -> None:
    """A failed assembly changes nothing: the next one asks again."""
    prompt = SystemPrompt()
    answers: list[Any] = [ValueError("once"), "fine"]

    def provider() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    prompt.section("s", provider, order=1)
    with pytest.raises(ProviderFailedError, match="once"):
        prompt.render_sync()
    assert prompt.render_sync().text == "fine"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exit_is_no_failure(stop: type[BaseException], kind: str) -> None:
    """KeyboardInterrupt and SystemExit out of a sync provider propagate as they are, also with `on_error="skip"`."""
    prompt = SystemPrompt()

    def provider() -> Any:
        raise stop

    register(prompt, kind, "x", provider, on_error="skip")
    with pytest.raises(stop):
        prompt.render_sync()


def test_our_own_errors_keep_their_kind() -> None:
    """A failure that one of our own checks told keeps that check's kind, and the error itself as the cause."""
    key = ContextKey("tenant", str)
    prompt = SystemPrompt(limits=PromptLimits(text=10, value=5))
    prompt.variable("v", lambda: "123456")
    prompt.tools(lambda: 5)  # type: ignore[arg-type, return-value]
    prompt.section("large", lambda: "12345678901", order=1)
    prompt.section("none", lambda: None, order=2)  # type: ignore[arg-type, return-value]
    prompt.context("missing", lambda context: context[key], order=1)
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    kinds = ["prompt_too_large", "invalid_tool_schema", "prompt_too_large", "not_a_string", "missing_context_value"]
    assert [failure.kind for failure in caught.value.failures] == kinds
    cause = caught.value.__cause__
    assert isinstance(cause, ExceptionGroup)
    types = [
        PromptTooLargeError,
        InvalidToolSchemaError,
        PromptTooLargeError,
        NotAStringError,
        MissingContextValueError,
    ]
    assert [type(each) for each in cause.exceptions] == types


# Conditions


def test_a_condition_that_does_not_hold_leaves_its_entry_out() -> None:
    """Where `when` is false the provider is not asked: no text, no tools, a variable without value; the trace says why."""
    prompt = SystemPrompt()
    asked: list[str] = []

    def never(context: AssembleContext) -> bool:
        return False

    for kind in KINDS:
        register(prompt, kind, "x", lambda: asked.append("!") or "", when=never)
    rendering = prompt.render_sync()
    assert asked == []
    assert facts(prompt) == ("", "", [])
    assert prompt.assemble_sync().variables == {"x": None}
    left_out = [each for each in reasons(rendering, "x") if each[0] == "collect"]
    assert left_out == [("collect", "left_out", "when")] * 3
    assert [event.kind for event in rendering.trace.events if event.reason == "when"] == [
        "variable",
        "tool provider",
        "section",
        "context",
    ]


def test_a_condition_looks_at_the_context() -> None:
    """A condition decides anew in each assembly, over static values too."""
    prompt = SystemPrompt()

    def is_gpt(context: AssembleContext) -> bool:
        return context.model is not None and context.model.matches("gpt-*")

    prompt.section("s", "persist", order=1, when=is_gpt)
    prompt.context("c", "persist", order=1, when=is_gpt)
    prompt.variable("v", "persist", when=is_gpt)
    prompt.tools([tool("persist")], when=is_gpt)
    nothing, everything = ("", "", []), ("persist", "persist", ["persist"])
    for name, expected in (("gpt-5", everything), ("claude", nothing), ("gpt-4", everything)):
        context = AssembleContext(model=ModelRef("x", name))
        assert facts(prompt, context) == expected
        assert prompt.assemble_sync(context).variables["v"] == (expected[0] or None)
    assert facts(prompt) == nothing


def test_what_a_condition_gives_counts_as_true_or_false() -> None:
    """Any answer of a condition is taken as Python takes it: an empty string is no, a filled one yes."""
    prompt = SystemPrompt()
    prompt.section("yes", "yes", order=1, when=lambda context: "x")  # type: ignore[arg-type, return-value]
    prompt.section("no", "no", order=2, when=lambda context: "")  # type: ignore[arg-type, return-value]
    assert prompt.render_sync().text == "yes"


def test_conditions_are_asked_before_any_provider() -> None:
    """All conditions come first, whatever the kinds of their entries."""
    prompt = SystemPrompt()
    calls: list[str] = []

    def note(what: str, answer: Any) -> Provider:
        return lambda context: calls.append(what) or answer

    prompt.variable("v", note("provider", "v"), when=note("when", True))
    prompt.section("s", note("provider", "s"), order=1, when=note("when", True))
    prompt.context("c", note("provider", "c"), order=1, when=note("when", True))
    prompt.tools(note("provider", []), when=note("when", True))
    prompt.render_sync()
    assert calls == ["when"] * 4 + ["provider"] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_raising_condition_is_its_entry_s_failure(kind: str) -> None:
    """A condition that raises fails its entry as its provider would, and the provider is not asked."""
    prompt = SystemPrompt()
    asked: list[str] = []
    register(prompt, kind, "x", lambda: asked.append("!"), when=failing_condition)
    with pytest.raises(ProviderFailedError, match="no tenant") as caught:
        prompt.render_sync()
    assert [failure.error for failure in caught.value.failures] == ["LookupError"]
    assert asked == []


def failing_condition(context: AssembleContext) -> bool:
    raise LookupError("no tenant")


class Undecided:
    """What is neither true nor false, as an array of several numbers is."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


async def is_admin(context: AssembleContext) -> bool:
    return False


@pytest.mark.parametrize(
    ("condition", "why"),
    [(lambda context: Undecided(), "ValueError: ambiguous"), (lambda context: is_admin(context), "plain function")],
)
def test_a_condition_that_gives_neither_yes_nor_no_is_its_entry_s_failure(condition: Any, why: str) -> None:
    """What cannot be taken as true or false, and an awaitable, which would always be true, fail the entry."""
    prompt = SystemPrompt()
    prompt.section("s", "for admins", order=1, when=condition)
    with pytest.raises(ProviderFailedError, match=f'section "s".*{why}'):
        prompt.render_sync()
    lenient = SystemPrompt()
    lenient.section("s", "for admins", order=1, when=condition, on_error="skip")
    rendering = lenient.render_sync()
    assert rendering.text == ""
    assert why in str(rendering.missing("s"))


def test_what_a_failure_says_can_always_be_written_down() -> None:
    """Half a surrogate pair in an error's message is escaped, in our error as in the trace."""
    prompt = SystemPrompt()

    def broken() -> str:
        raise ValueError("no \ud800")

    prompt.section("skipped", broken, order=1, on_error="skip")
    assert r"no \ud800" in str(prompt.render_sync().missing("skipped")).encode().decode()
    prompt.section("failing", broken, order=1)
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    assert r"no \ud800" in str(caught.value).encode().decode()


def test_an_error_that_cannot_say_what_it_is_is_told_by_its_type() -> None:
    """Its `__str__` is somebody else's code, too: of a provider, a listener, a plugin."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def broken() -> str:
        raise MuteError

    prompt = SystemPrompt()
    prompt.section("skipped", broken, order=1, on_error="skip")
    assert "skipped: MuteError" in str(prompt.render_sync().missing("skipped"))
    prompt.section("failing", broken, order=1)
    with pytest.raises(ProviderFailedError, match=r'section "failing" of main .* raised MuteError'):
        prompt.render_sync()


def test_a_static_value_with_a_condition_may_be_skipped() -> None:
    """`on_error` fits a static value that has a condition: that can raise."""
    prompt = SystemPrompt()
    prompt.section("s", "S", order=1, when=failing_condition, on_error="skip")
    prompt.section("p", "P", order=2, when=failing_condition, on_error=Placeholder("(unavailable)"))
    prompt.variable("v", "V", when=failing_condition, on_error=Placeholder("?"))
    prompt.section("t", "{{v}}", order=3)
    assert prompt.render_sync().text == "(unavailable)\n\n?"


# on_error


@pytest.mark.parametrize("door", DOORS)
def test_skip_leaves_the_failed_entry_out(door: str) -> None:
    """With `skip` a failed section or context has no text, a variable no value, a provider no tools; the trace says
    what was skipped and why."""
    prompt = SystemPrompt()
    prompt.section("s", "rest", order=2)
    for kind in KINDS:
        register(prompt, kind, "x", DOORS[door](kind), on_error="skip")
    rendering = prompt.render_sync()
    assert facts(prompt) == ("rest", "", [])
    assert prompt.assemble_sync().variables == {"x": None}
    skipped = [event.reason for event in rendering.trace.events if event.action == "left_out"]
    assert skipped == [f"skipped: ValueError: {kind}" for kind in KINDS]


@pytest.mark.parametrize("door", DOORS)
def test_a_placeholder_stands_in_verbatim(door: str) -> None:
    """A placeholder's text is no template, in a text or as a value, and takes the failed entry's place."""
    prompt = SystemPrompt()
    text = Placeholder("{{x}} & {{{{x}}}}")
    for kind in ("variable", "section", "context"):
        register(prompt, kind, "x", DOORS[door](), on_error=text)
    prompt.section("y", "[{{x}}]", order=2)
    rendering = prompt.render_sync()
    assert facts(prompt) == (f"{text.text}\n\n[{text.text}]", text.text, [])
    replaced = [(event.kind, event.reason) for event in rendering.trace.events if event.action == "placeholder"]
    assert replaced == [(kind, "skipped: ValueError: boom") for kind in ("variable", "section", "context")]


def test_an_empty_placeholder_is_a_value() -> None:
    """A placeholder may be empty: the variable then has a value, the section is dropped as empty."""
    prompt = SystemPrompt()
    prompt.variable("v", failing(), on_error=Placeholder(""))
    prompt.section("a", "[{{v}}]", order=1)
    prompt.section("b", failing(), order=2, on_error=Placeholder(""))
    assert prompt.render_sync().text == "[]"


def test_only_the_failures_that_nobody_excused_are_told() -> None:
    """What is skipped or replaced does not show among the failures of those that are not."""
    prompt = SystemPrompt()
    prompt.section("skipped", failing("skipped"), order=1, on_error="skip")
    prompt.section("fatal", failing("fatal"), order=2)
    prompt.section("replaced", failing("replaced"), order=3, on_error=Placeholder("x"))
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    assert [failure.message for failure in caught.value.failures] == ["fatal"]


@pytest.mark.parametrize("on_error", ["skip", Placeholder("x")], ids=["skip", "placeholder"])
@pytest.mark.parametrize("provider", [failing(), failing_async()], ids=["sync", "async"])
def test_a_complete_section_always_fails(on_error: Any, provider: Provider) -> None:
    """A complete section is the whole prompt: whatever its `on_error`, its failure fails the assembly."""
    prompt = SystemPrompt()
    prompt.section("s", provider, order=1, complete=True, on_error=on_error)
    with pytest.raises(ProviderFailedError, match='section "s"'):
        prompt.render_sync()


@pytest.mark.parametrize("on_error", ["skip", Placeholder("x")], ids=["skip", "placeholder"])
@pytest.mark.parametrize("how", ["provider", "condition"])
def test_a_protected_section_always_fails(on_error: Any, how: str) -> None:
    """A protected section must not vanish by failing: while it is protected its `on_error` does not count."""
    prompt = SystemPrompt()
    options: dict[str, Any] = {"when": failing_condition} if how == "condition" else {}
    prompt.section("s", failing(), order=1, on_error=on_error, **options)
    assert prompt.render_sync().text in ("", "x")
    agent = prompt.scope("agent")
    with agent.protect(sections=["s"]):
        with pytest.raises(ProviderFailedError, match='section "s"'):
            agent.render_sync()
        assert prompt.render_sync().text in ("", "x")
    with prompt.protect(sections=["s"]), pytest.raises(ProviderFailedError, match='section "s"'):
        agent.render_sync()
    assert agent.render_sync().text in ("", "x")


def test_a_protected_section_may_be_left_out_by_its_condition() -> None:
    """A condition that is false is no failure: a protected section keeps it."""
    prompt = SystemPrompt()
    prompt.protect(sections=["s"])
    prompt.section("s", failing(), order=1, when=lambda context: False)
    assert prompt.render_sync().text == ""


# Complete sections are counted before anybody is asked


def test_two_complete_sections_are_refused_before_any_provider() -> None:
    """More than one effective complete section is told, both named, before a provider is asked."""
    prompt = SystemPrompt()
    asked: list[str] = []
    prompt.variable("v", lambda: asked.append("!") or "")
    prompt.owner("one").section("a", lambda: asked.append("!") or "", order=1, complete=True)
    prompt.owner("two").section("b", "B", order=2, complete=True)
    with pytest.raises(MultipleCompleteSectionsError) as caught:
        prompt.render_sync()
    assert [(ref.name, ref.owner) for ref in caught.value.sections] == [("a", "one"), ("b", "two")]
    assert asked == []


def test_complete_sections_count_only_where_they_are_in_force() -> None:
    """A complete section that is shadowed, or left out by its condition, does not count."""
    prompt = SystemPrompt()
    prompt.section("a", "A", order=1, complete=True)
    prompt.section("b", "B", order=2, complete=True, when=lambda context: context.model is not None)
    agent = prompt.scope("agent")
    agent.section("a", "mine", order=1)
    assert prompt.render_sync().text == "A"
    assert agent.render_sync(AssembleContext(model=ModelRef("x", "y"))).text == "B"
    assert agent.render_sync().text == "mine"
    with pytest.raises(MultipleCompleteSectionsError):
        prompt.render_sync(AssembleContext(model=ModelRef("x", "y")))


# Suppressors


def test_a_suppressor_keeps_contexts_from_being_asked() -> None:
    """While a suppressor stands anywhere in the chain no context is asked, not even for its condition."""
    prompt = SystemPrompt()
    asked: list[str] = []

    def noting(context: AssembleContext) -> Any:
        asked.append("!")
        return "C"

    prompt.context("c", noting, order=1, when=noting)
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    first, second = team.suppress_runtime_context(), team.suppress_runtime_context()
    assert agent.render_sync().snapshot == ""
    first.close()
    assert agent.render_sync().snapshot == ""
    assert asked == []
    second.close()
    assert facts(agent) == ("", "C", [])


def test_a_suppressed_context_cannot_fail() -> None:
    """A failing context is no failure where contexts are suppressed."""
    prompt = SystemPrompt()
    prompt.context("c", failing(), order=1)
    agent = prompt.scope("agent")
    agent.suppress_runtime_context()
    assert agent.render_sync().snapshot == ""
    with pytest.raises(ProviderFailedError):
        prompt.render_sync()


def test_a_suppressor_reaches_its_scope_and_below() -> None:
    """A scoped suppressor leaves the global prompt and sibling scopes alone."""
    prompt = SystemPrompt()
    prompt.context("c", "C", order=1)
    one, other = prompt.scope("one"), prompt.scope("other")
    one.suppress_runtime_context()
    assert [facts(view)[1] for view in (prompt, one, other)] == ["C", "", "C"]


def test_contexts_can_be_left_out_by_the_configuration() -> None:
    """`include_runtime_context=False` asks no context, in any scope; the trace names the configuration."""
    prompt = SystemPrompt(include_runtime_context=False)
    prompt.context("c", failing(), order=1)
    rendering = prompt.scope("agent").render_sync()
    assert rendering.snapshot == ""
    (event,) = [event for event in rendering.trace.about("c") if event.stage == "collect"]
    assert (event.reason, event.by) == ("suppressed", "the configuration")


# Cancelling


def cancelled(reason: str = "user") -> AssembleContext:
    token = CancelToken()
    token.cancel(reason)
    return AssembleContext(signal=token)


def test_a_cancelled_signal_stops_before_the_providers() -> None:
    """With a cancelled signal no provider is asked; the error tells the reason."""
    prompt = SystemPrompt()
    asked: list[str] = []
    prompt.section("s", lambda: asked.append("!") or "", order=1)
    with pytest.raises(AssemblyCancelledError, match="turn ended") as caught:
        prompt.render_sync(cancelled("turn ended"))
    assert (caught.value.kind, caught.value.reason) == ("cancelled", "turn ended")
    assert asked == []


@pytest.mark.anyio
async def test_a_signal_cancelled_meanwhile_stops_before_the_waterfall() -> None:
    """A signal that is cancelled while providers run stops the assembly before any listener hears of it."""
    prompt = SystemPrompt()
    token = CancelToken()
    heard: list[str] = []

    async def provider() -> str:
        token.cancel()
        return "S"

    prompt.section("s", provider, order=1)
    prompt.on_assemble(listener(lambda assembly: heard.append("!")))
    with pytest.raises(AssemblyCancelledError):
        await prompt.render(AssembleContext(signal=token))
    assert heard == []


@pytest.mark.anyio
async def test_a_signal_cancelled_in_the_waterfall_comes_too_late() -> None:
    """Once listeners run nobody looks at the signal any more: the assembly is made."""
    prompt = SystemPrompt()
    token = CancelToken()
    prompt.on_assemble(listener(lambda assembly: token.cancel()))
    prompt.section("s", "S", order=1)
    assert (await prompt.render(AssembleContext(signal=token))).text == "S"


def test_a_signal_that_is_not_cancelled_changes_nothing() -> None:
    """A token alone does nothing, and its first reason stands."""
    token = CancelToken()
    prompt = SystemPrompt(persona="P")
    assert prompt.render_sync(AssembleContext(signal=token)).text == "P"
    assert not token.cancelled
    token.cancel("first")
    token.cancel("second")
    assert (token.cancelled, token.reason) == (True, "first")


# Others


def test_sensitive_is_accepted() -> None:
    """A context or variable may be marked sensitive; the prompt itself is the same."""
    prompt = SystemPrompt()
    prompt.context("c", "{{v}}", order=1, sensitive=True)
    prompt.variable("v", lambda: "V", sensitive=True)

    @prompt.context("d", order=2, sensitive=True)
    def decorated() -> str:
        return "D"

    assert facts(prompt) == ("", "V\n\nD", [])


def test_sections_are_asked_also_when_one_is_complete() -> None:
    """A complete section does not spare the others from being asked, nor from failing."""
    prompt = SystemPrompt()
    prompt.section("all", "all", order=1, complete=True)
    prompt.section("other", failing(), order=2)
    with pytest.raises(ProviderFailedError):
        prompt.render_sync()


def test_every_provider_in_force_is_asked_once_an_assembly() -> None:
    """A provider's answer serves a whole assembly, however often its variable is used; the next one asks again."""
    prompt = SystemPrompt()
    calls: list[str] = []

    def provider() -> str:
        calls.append("!")
        return str(len(calls))

    prompt.variable("v", provider)
    prompt.section("s", "{{v}}{{v}}", order=1)
    prompt.context("c", "{{v}}", order=1)
    assert facts(prompt) == ("11", "1", [])
    assert facts(prompt) == ("22", "2", [])
    assert names(prompt.assemble_sync().sections) == ["deployment:persona", "s"]
