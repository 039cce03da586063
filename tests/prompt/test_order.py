"""Canonical order of tools: a function of the set, or as the configuration lists them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from tests.support.short import listener, names, tool

from foreword import (
    TOOL_ORDER_REST,
    InvalidConfigError,
    ProviderFailedError,
    ReservedToolNameError,
    SystemPrompt,
    ToolProviderResult,
    UnknownToolOrderError,
)


def ordered(given: list[str], tool_order: list[str] | None = None) -> list[str]:
    prompt = SystemPrompt(tool_order=tool_order)
    for name in given:
        prompt.tools([tool(name)])
    return names(prompt.render_sync().tools)


@pytest.mark.parametrize("given", list(permutations(["Z", "a", "ä", "B"])))
def test_without_a_tool_order_tools_stand_by_name(given: tuple[str, ...]) -> None:
    """By code point, whatever the order of registration; no locale, no case folding."""
    assert ordered(list(given)) == ["B", "Z", "a", "ä"]


@pytest.mark.parametrize("given", list(permutations(["a", "b", "c", "d"])))
def test_listed_tools_stand_at_their_place(given: tuple[str, ...]) -> None:
    """Listed names take their listed place, the rest stands by name at the marker."""
    assert ordered(list(given), ["d", TOOL_ORDER_REST, "a"]) == ["d", "b", "c", "a"]
    assert ordered(list(given), [TOOL_ORDER_REST]) == ["a", "b", "c", "d"]
    assert ordered(list(given), ["c", "d", "b", "a", TOOL_ORDER_REST]) == ["c", "d", "b", "a"]


def test_equal_names_keep_the_order_of_collecting() -> None:
    """Tools of one name stand together, global ones first, then farthest to nearest; listed or not."""
    for tool_order in (None, ["t", TOOL_ORDER_REST], [TOOL_ORDER_REST]):
        prompt = SystemPrompt(tool_order=tool_order)
        team = prompt.scope("team")
        agent = prompt.scope("agent", parent=team)
        for view in (agent, team, prompt):
            view.tools([tool("t", view.key.name)])
        told = [each.description for each in agent.render_sync().tools]
        assert told == ["global", "team", "agent"], tool_order


def test_unknown_names_are_told_all_at_once() -> None:
    """Listed names that no provider knows are one error, with the sorted known names and a guess."""
    prompt = SystemPrompt(tool_order=["edti", "bahs", TOOL_ORDER_REST, "edit"])
    prompt.tools([tool("edit"), tool("bash")])
    with pytest.raises(UnknownToolOrderError, match='did you mean "edit"') as caught:
        prompt.render_sync()
    error = caught.value
    assert (error.kind, error.unknown, error.known) == ("tool_order_unknown", ("edti", "bahs"), ("bash", "edit"))
    assert "bahs" in str(error)


def test_a_known_tool_may_be_absent() -> None:
    """A name that a provider knows and does not show is a plain absence, and no error."""
    prompt = SystemPrompt(tool_order=["edit", TOOL_ORDER_REST])
    prompt.tools(lambda: ToolProviderResult([tool("bash")], known_names=["bash", "edit"]))
    assert names(prompt.render_sync().tools) == ["bash"]


def test_known_names_count_across_providers_and_layers() -> None:
    """One provider's known names vouch for all, as far as the chain reaches."""
    prompt = SystemPrompt(tool_order=["edit", TOOL_ORDER_REST])
    agent = prompt.scope("agent")
    agent.tools(ToolProviderResult([], known_names=["edit"]))
    prompt.tools([tool("bash")])
    assert names(agent.render_sync().tools) == ["bash"]
    with pytest.raises(UnknownToolOrderError):
        prompt.render_sync()


@pytest.mark.parametrize("as_provider", [False, True])
def test_an_empty_universe_is_not_no_universe(as_provider: bool) -> None:
    """Empty known names are a universe of none: even the shown tools are unknown then. Only None means their names."""

    def given(known: Any) -> Any:
        result = ToolProviderResult([tool("bash")], known_names=known)
        return (lambda: result) if as_provider else result

    for known in ([], (), frozenset()):
        prompt = SystemPrompt(tool_order=["bash", TOOL_ORDER_REST])
        prompt.tools(given(known))
        with pytest.raises(UnknownToolOrderError, match="no known tools"):
            prompt.render_sync()
    prompt = SystemPrompt(tool_order=["bash", TOOL_ORDER_REST])
    prompt.tools(given(None))
    assert names(prompt.render_sync().tools) == ["bash"]


def test_a_tool_order_needs_tools() -> None:
    """A listed name with no provider at all is unknown."""
    with pytest.raises(UnknownToolOrderError):
        SystemPrompt(tool_order=["bash", TOOL_ORDER_REST]).render_sync()


def test_the_marker_is_no_tool() -> None:
    """A provider that answers with a tool of the marker's name fails the assembly, before unknown names are told."""
    prompt = SystemPrompt(tool_order=["nobody", TOOL_ORDER_REST])
    prompt.owner("files").tools(lambda: [tool("a"), tool(TOOL_ORDER_REST)])  # type: ignore[arg-type, return-value]
    for _ in range(2):
        with pytest.raises(ReservedToolNameError, match="files"):
            prompt.render_sync()


def test_what_listeners_add_is_not_sorted_again() -> None:
    """Tools that a listener adds stand where it put them."""
    prompt = SystemPrompt(tool_order=["b", TOOL_ORDER_REST])
    prompt.tools([tool("b"), tool("a")])
    prompt.on_assemble(listener(lambda assembly: assembly.tools.insert(1, tool("0"))))
    prompt.on_assemble(listener(lambda assembly: assembly.tools.append(tool("b"))))
    assert names(prompt.render_sync().tools) == ["b", "0", "a", "b"]


# Providers that were left out


class Flaky:
    """A provider of tools that answers or fails as told."""

    def __init__(self, *schemas: str) -> None:
        self.schemas = schemas
        self.works = True

    def __call__(self) -> ToolProviderResult:
        if not self.works:
            raise OSError("server gone")
        return ToolProviderResult([tool(name) for name in self.schemas])


def test_a_skipped_provider_that_never_answered_excuses_unknown_names() -> None:
    """While a skipped provider has never succeeded, a typo cannot be told from its tools: unknown names pass, and the
    trace says so."""
    prompt = SystemPrompt(tool_order=["mcp", TOOL_ORDER_REST])
    flaky = Flaky("mcp")
    flaky.works = False
    prompt.tools(flaky, on_error="skip")
    prompt.tools([tool("bash")])
    rendering = prompt.render_sync()
    assert names(rendering.tools) == ["bash"]
    (event,) = [event for event in rendering.trace.about("mcp") if event.action == "unchecked"]
    assert (event.stage, event.kind) == ("order", "tool")
    flaky.works = True
    rendering = prompt.render_sync()
    assert names(rendering.tools) == ["mcp", "bash"]
    assert not [event for event in rendering.trace.events if event.action == "unchecked"]


def test_a_skipped_provider_that_answered_once_vouches_for_its_names() -> None:
    """Once it succeeded its last known names stay known: they are a plain absence, and a typo is an error again."""
    flaky = Flaky("mcp")
    prompt = SystemPrompt(tool_order=["mcp", TOOL_ORDER_REST])
    prompt.tools(flaky, on_error="skip")
    assert names(prompt.render_sync().tools) == ["mcp"]
    flaky.works = False
    assert names(prompt.render_sync().tools) == []
    flaky.works, flaky.schemas = True, ("other",)
    with pytest.raises(UnknownToolOrderError, match="mcp"):
        prompt.render_sync()
    flaky.works = False
    with pytest.raises(UnknownToolOrderError, match="other"):
        prompt.render_sync()


def test_a_provider_left_out_by_its_condition_excuses_likewise() -> None:
    """What holds for a skipped provider holds for one whose condition does not hold."""
    prompt = SystemPrompt(tool_order=["mcp", TOOL_ORDER_REST])
    prompt.tools(Flaky("mcp"), when=lambda context: context.model is not None)
    assert names(prompt.render_sync().tools) == []


def test_a_static_provider_left_out_is_known() -> None:
    """The names of a static list are known from the start, also while its condition leaves it out."""
    prompt = SystemPrompt(tool_order=["mcp", "typo", TOOL_ORDER_REST])
    prompt.tools([tool("mcp")], when=lambda context: False)
    with pytest.raises(UnknownToolOrderError) as caught:
        prompt.render_sync()
    assert (caught.value.unknown, caught.value.known) == (("typo",), ("mcp",))


def test_a_failing_provider_is_told_before_unknown_names() -> None:
    """A failure that nobody excused comes first: unknown names may be its fault."""
    flaky = Flaky("mcp")
    flaky.works = False
    prompt = SystemPrompt(tool_order=["mcp", TOOL_ORDER_REST])
    prompt.tools(flaky)
    with pytest.raises(ProviderFailedError, match="server gone"):
        prompt.render_sync()


# The configuration


@pytest.mark.parametrize(
    ("tool_order", "kind"),
    [
        (["a", "a", TOOL_ORDER_REST], "tool_order_duplicate"),
        (["a", "b", "a"], "tool_order_duplicate"),
        ([TOOL_ORDER_REST, "a", TOOL_ORDER_REST], "tool_order_duplicate"),
        (["a", "b"], "tool_order_missing_rest"),
        ([], "tool_order_missing_rest"),
    ],
    ids=str,
)
def test_a_tool_order_lists_each_name_and_the_marker_once(tool_order: list[str], kind: str) -> None:
    """A name listed twice is told first, then a missing marker."""
    with pytest.raises(InvalidConfigError, match="tool_order") as caught:
        SystemPrompt(tool_order=tool_order)
    assert caught.value.kind == kind
    assert [fault.kind for fault in caught.value.faults] == [kind]


def test_a_tool_order_is_taken_down_at_the_call() -> None:
    """The list handed over may be changed afterwards."""
    tool_order = ["b", TOOL_ORDER_REST]
    prompt = SystemPrompt(tool_order=tool_order)
    prompt.tools([tool("a"), tool("b")])
    tool_order.clear()
    assert names(prompt.render_sync().tools) == ["b", "a"]
    assert prompt.config.tool_order == ("b", TOOL_ORDER_REST)
