"""What a scope sees of its chain: merging, order, conditions and tools, against a model that merges dicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.model import merged, tools_in_order

from foreword import (
    TOOL_ORDER_REST,
    AssembleContext,
    MultipleCompleteSectionsError,
    ProviderFailedError,
    ScopeKey,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
    bind_parent,
)

NAMES = ("a", "b", "c", "d", "e", "f")


@dataclass(frozen=True)
class Entry:
    name: str
    order: float
    text: str
    asked: bool = False  # its text comes from a provider
    wanted: bool = True  # what its condition says
    needs: str = ""  # a tool without which it goes


names = st.sampled_from(NAMES)
entries = st.builds(
    Entry,
    names,
    st.sampled_from((-1, 0, 0, 1, 1, 1.0, 2, 10**20, -0.5)),
    st.sampled_from(("", "x", "y")),
    st.booleans(),
    st.sampled_from((True, True, True, False)),
    st.sampled_from(("", "", "", "t", "u")),
)


def layers_of(entry: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    """The global layer, then those of a chain, farthest first; unique names in each."""
    layer = st.lists(entry, max_size=6, unique_by=lambda each: each.name)
    return st.lists(layer, min_size=1, max_size=4)


class Chain:
    """A registry with a chain of scopes, and the names of the providers that were asked."""

    def __init__(self, depth: int, **config: Any) -> None:
        self.prompt = SystemPrompt(**config)
        self.asked: list[tuple[str, int]] = []
        self.views = [self.prompt]
        for number in range(1, depth):
            above = self.views[-1] if number > 1 else None
            self.views.append(self.prompt.scope(f"scope {number}", parent=above))

    def text(self, entry: Entry, layer: int) -> Any:
        if not entry.asked:
            return f"{entry.text}{layer}"

        def provider() -> str:
            self.asked.append((entry.name, layer))
            return f"{entry.text}{layer}"

        return provider

    def add(self, kind: str, entry: Entry, layer: int) -> Any:
        call = self.views[layer].section if kind == "section" else self.views[layer].context
        options: dict[str, Any] = {"requires_tools": [entry.needs] if entry.needs else []}
        if not entry.wanted:
            options["when"] = lambda context: False
        return call(entry.name, self.text(entry, layer), order=entry.order, **options)


@dataclass(frozen=True)
class Placed:
    """An entry with its layer, as the model merges it."""

    entry: Entry
    layer: int

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def order(self) -> float:
        return self.entry.order


def expected(layers: list[list[Entry]], *, by_name: bool, persona: bool) -> list[Placed]:
    placed = [[Placed(entry, number) for entry in layer] for number, layer in enumerate(layers)]
    if persona:
        placed[0].insert(0, Placed(Entry("deployment:persona", 0, ""), -1))
    return merged(placed, by_name=by_name)


@given(
    layers_of(entries), st.sampled_from(("registration", "name")), st.sampled_from(("section", "context")), st.data()
)
@example(
    [[Entry("a", 1, "x"), Entry("b", 1, "x"), Entry("c", 1, "x")], [Entry("b", 1, "y")]],
    "registration",
    "section",
    None,
)
@example(
    [[Entry("a", 1, "x"), Entry("b", 2, "x")], [Entry("c", 2, "x"), Entry("a", 2, "y")]],
    "registration",
    "section",
    None,
)
def test_a_chain_sees_its_entries_merged_by_name_and_sorted(
    layers: list[list[Entry]], ties: str, kind: str, data: st.DataObject | None
) -> None:
    """The nearest wins a name and keeps the place among equals of what it shadows; only those in force are asked."""
    chain = Chain(len(layers), section_ties=ties)
    todo = [(number, entry) for number, layer in enumerate(layers) for entry in layer]
    if data is not None:  # between layers the order of registering does not matter, within one it does
        todo = _shuffled(todo, data)
        layers = [[entry for number, entry in todo if number == layer] for layer in range(len(layers))]
    for number, entry in todo:
        chain.add(kind, entry, number)
    chain.prompt.tools([ToolSchema("t", "", {})])
    for depth in range(1, len(layers) + 1):
        chain.asked.clear()
        assembly = chain.views[depth - 1].assemble_sync()
        seen = expected(layers[:depth], by_name=ties == "name", persona=kind == "section")
        in_force = [each for each in seen if each.entry.wanted]
        told = [
            (each.name, "" if each.layer < 0 else f"{each.entry.text}{each.layer}")
            for each in in_force
            if each.entry.needs in ("", "t")
        ]
        found = assembly.sections if kind == "section" else assembly.contexts
        assert [(each.name, each.text) for each in found] == told
        assert sorted(chain.asked) == sorted((each.name, each.layer) for each in in_force if each.entry.asked)


def _shuffled(todo: list[tuple[int, Entry]], data: st.DataObject) -> list[tuple[int, Entry]]:
    return data.draw(st.permutations(todo))


@given(
    st.lists(
        st.lists(
            st.tuples(names, st.sampled_from((False, False, True)), st.booleans()), max_size=4, unique_by=lambda e: e[0]
        ),
        min_size=1,
        max_size=3,
    )
)
def test_the_one_complete_section_in_force_is_the_prompt_and_two_are_an_error(
    layers: list[list[tuple[str, bool, bool]]],
) -> None:
    """What is shadowed or left out does not count; the error names those that do."""
    chain = Chain(len(layers))
    for number, layer in enumerate(layers):
        for name, complete, wanted in layer:
            condition: dict[str, Any] = {} if wanted else {"when": lambda context: False}
            chain.views[number].section(name, f"{name}{number}", order=1, complete=complete, **condition)
    for depth in range(1, len(layers) + 1):
        nearest = {
            name: (number, complete, wanted)
            for number, layer in enumerate(layers[:depth])
            for name, complete, wanted in layer
        }
        in_force = {f"{name}{number}" for name, (number, complete, wanted) in nearest.items() if complete and wanted}
        view = chain.views[depth - 1]
        if len(in_force) > 1:
            with pytest.raises(MultipleCompleteSectionsError) as caught:
                view.assemble_sync()
            scopes = [None, *(f"scope {number}" for number in range(1, depth))]
            assert {f"{ref.name}{scopes.index(ref.scope)}" for ref in caught.value.sections} == in_force
        elif in_force:
            assert view.render_sync().text == in_force.pop()
        else:
            texts = {f"{name}{number}" for name, (number, _, wanted) in nearest.items() if wanted}
            assert set(filter(None, view.render_sync().text.split("\n\n"))) == texts


@dataclass(frozen=True)
class Value:
    name: str
    value: str | None
    how: str  # "static", "asked", "unwanted"


held_values = st.builds(
    Value, names, st.sampled_from((None, "", "x", "y")), st.sampled_from(("static", "static", "asked", "unwanted"))
)


@given(layers_of(held_values))
def test_the_nearest_variable_wins_its_name_even_without_a_value(layers: list[list[Value]]) -> None:
    """Every registered name is there; None hides what is behind it; a shadowed provider is not asked."""
    chain = Chain(len(layers))
    asked: list[tuple[str, int]] = []

    def provider(value: Value, layer: int) -> Any:
        def answer() -> str | None:
            asked.append((value.name, layer))
            return value.value

        return answer

    for number, layer in enumerate(layers):
        for value in layer:
            unwanted: dict[str, Any] = {"when": lambda context: False} if value.how == "unwanted" else {}
            given_value = value.value if value.how == "static" else provider(value, number)
            chain.views[number].variable(value.name, given_value, **unwanted)
    for depth in range(1, len(layers) + 1):
        asked.clear()
        nearest = {value.name: (value, number) for number, layer in enumerate(layers[:depth]) for value in layer}
        told = {name: None if value.how == "unwanted" else value.value for name, (value, _) in nearest.items()}
        assert chain.views[depth - 1].assemble_sync().variables == told
        assert sorted(asked) == sorted((name, at) for name, (value, at) in nearest.items() if value.how == "asked")


@given(
    st.lists(st.lists(st.lists(st.sampled_from(("t", "u", "T", "ä")), max_size=3), max_size=3), min_size=1, max_size=3),
    st.none() | st.permutations(("u", "ä", TOOL_ORDER_REST)),
)
def test_tools_of_one_name_keep_the_order_global_first_nearest_last(
    layers: list[list[list[str]]], tool_order: list[str] | None
) -> None:
    """All tools of the chain are there, by name or as listed; equal names as they were collected."""
    chain = Chain(len(layers), tool_order=tool_order)
    chain.prompt.tools(ToolProviderResult([], known_names=["u", "ä"]))
    collected: list[ToolSchema] = []
    for number, layer in enumerate(layers):
        for place, provided in enumerate(layer):
            schemas = [ToolSchema(name, f"{number}.{place}.{at}", {}) for at, name in enumerate(provided)]
            chain.views[number].tools(schemas if place % 2 else lambda schemas=schemas: schemas)
            collected += schemas
        assert list(chain.views[number].assemble_sync().tools) == tools_in_order(collected, tool_order, TOOL_ORDER_REST)


@given(
    st.lists(st.tuples(names, st.integers(0, 3)), min_size=1, max_size=6, unique_by=lambda pair: pair[0]),
    st.randoms(use_true_random=False),
)
def test_every_failing_provider_is_told_in_the_fixed_order(failing: list[tuple[str, int]], random: Any) -> None:
    """Variables, tools, sections, contexts, each as registered or placed; replacing one leaves it in its place."""
    prompt = SystemPrompt()

    def fail() -> Any:
        raise RuntimeError("out of order")

    replaceable: list[Any] = []
    for name, kind in failing:
        if kind == 0:
            replaceable.append(prompt.variable(name, "fine"))
        elif kind == 1:
            prompt.owner(name).tools(fail)
        else:
            call = prompt.section if kind == 2 else prompt.context
            replaceable.append(call(name, "fine", order=-NAMES.index(name)))
    random.shuffle(replaceable)
    for registration in replaceable:
        registration.replace(fail)
    told: list[tuple[int, str]] = []
    try:
        prompt.assemble_sync()
    except ProviderFailedError as error:
        kinds = ("variable", "tool provider", "section", "context")
        told = [
            (
                kinds.index(failure.entry.kind),
                failure.entry.owner if failure.entry.kind == kinds[1] else failure.entry.name,
            )
            for failure in error.failures
        ]
    registered = [(kind, name) for name, kind in failing]
    placed = sorted((each for each in registered if each[0] > 1), key=lambda each: (each[0], -NAMES.index(each[1])))
    assert told == [each for kind in (0, 1) for each in registered if each[0] == kind] + placed


@given(
    st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 4)), min_size=1, max_size=12), st.integers(0, 4)
)
def test_a_scope_that_moves_sees_the_layers_of_its_new_chain(moves: list[tuple[int, int | None]], asked: int) -> None:
    """After any moves a scope's text is made of its own layer and those above it, and of nothing else."""
    prompt = SystemPrompt()
    keys = [ScopeKey(f"k{number}") for number in range(5)]
    bindings = [bind_parent(key, None) for key in keys]
    parents: dict[int, int | None] = dict.fromkeys(range(5))
    for number, key in enumerate(keys):
        prompt.scope(key).section(f"own {number}", f"of {number}", order=1)
        prompt.scope(key).variable("nearest", str(number))
        prompt.scope(key).tools([ToolSchema("t", str(number), {})])
    prompt.section("who", "{{nearest}}", order=2)
    prompt.variable("nearest", "nobody")

    def chain(number: int | None) -> list[int]:
        return [] if number is None else [*chain(parents[number]), number]

    for moved, parent in moves:
        if moved not in chain(parent):
            bindings[moved].rebind(None if parent is None else keys[parent])
            parents[moved] = parent
        path = chain(asked)
        texts = [f"of {number}" for number in path]
        rendering = prompt.render_sync(AssembleContext(scope=keys[asked]))
        assert rendering.text == "\n\n".join([*texts, str(path[-1])])
        assert [tool.description for tool in rendering.tools] == [str(number) for number in path]
