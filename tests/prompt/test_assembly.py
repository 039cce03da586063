"""Assemblies by hand: lists of frozen entries and the edits that listeners make."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from tests.support.short import names, tool

from foreword import (
    AssembledContext,
    AssembledSection,
    ExtraKey,
    PromptAssembly,
    SystemPrompt,
    UnknownEntryError,
    join_context_sections,
    render,
    render_context_sections,
    render_context_snapshot,
    render_prompt,
)


def sections(text: str) -> Any:
    return PromptAssembly([AssembledSection(name, f"{name}{at}") for at, name in enumerate(text)]).sections


def shown(entries: Any) -> str:
    return " ".join(entry.text for entry in entries)


# Entries


def test_named_gives_the_first_of_a_name() -> None:
    """Of several entries of a name the first counts."""
    assert sections("abca").named("a").text == "a0"


def test_swap_puts_a_changed_copy_in() -> None:
    """`swap` changes fields of the first entry of a name, in place, and gives the new entry back."""
    entries = sections("abcb")
    old = entries.named("b")
    new = entries.swap("b", text="new", verbatim=True)
    assert shown(entries) == "a0 new c2 b3"
    assert (new.name, new.text, new.verbatim) == ("b", "new", True)
    assert old.text == "b1"
    assert entries[1] is new


def test_swap_may_rename() -> None:
    """The name is a field like the others."""
    entries = sections("ab")
    entries.swap("a", name="z")
    assert names(entries) == ["z", "b"]


def test_drop_takes_the_first_of_a_name_out() -> None:
    """`drop` removes one entry and gives it back."""
    entries = sections("abca")
    assert entries.drop("a").text == "a0"
    assert shown(entries) == "b1 c2 a3"


def test_place_puts_an_entry_beside_another() -> None:
    """`place` puts an entry before or after the first of a name, and gives it back."""
    entries = sections("abca")
    new = AssembledSection("x", "x")
    assert entries.place(new, before="c") is new
    entries.place(AssembledSection("y", "y"), after="a")
    entries.place(AssembledSection("z", "z"), before="a")
    assert shown(entries) == "z a0 y b1 x c2 a3"


@pytest.mark.parametrize("given", [{}, {"before": "a", "after": "b"}], ids=str)
def test_place_takes_one_neighbour(given: dict[str, str]) -> None:
    """Exactly one of `before` and `after` must be given."""
    with pytest.raises(TypeError, match="either before=NAME or after=NAME"):
        sections("ab").place(AssembledSection("x", "x"), **given)


@pytest.mark.parametrize("kind", ["sections", "contexts", "tools"])
@pytest.mark.parametrize(
    "edit",
    [
        lambda entries: entries.named("nmae"),
        lambda entries: entries.swap("nmae", name="x"),
        lambda entries: entries.drop("nmae"),
        lambda entries: entries.place(entries[0], before="nmae"),
        lambda entries: entries.place(entries[0], after="nmae"),
    ],
    ids=["named", "swap", "drop", "place before", "place after"],
)
def test_an_unknown_name_is_told_with_those_there_are(edit: Any, kind: str) -> None:
    """Every edit of an entry that is not there is an error naming kind, name, and the nearest known one."""
    assembly = PromptAssembly([AssembledSection("name", "x")], [AssembledContext("name", "x")], [tool("name")])
    entries = getattr(assembly, kind)
    with pytest.raises(UnknownEntryError, match=f'no {kind[:-1]} "nmae".*did you mean "name"') as caught:
        edit(entries)
    error = caught.value
    assert (error.kind, error.entry_kind, error.name, error.known) == ("unknown_entry", kind[:-1], "nmae", ("name",))
    assert isinstance(error, LookupError)
    assert len(entries) == 1


def test_lists_are_lists() -> None:
    """Apart from the edits by name, the lists are plain Python lists."""
    entries = sections("ab")
    entries.append(AssembledSection("c", "c"))
    entries.reverse()
    del entries[1]
    assert names(entries) == ["c", "a"]
    assert isinstance(entries, list)


# Entries are frozen


@pytest.mark.parametrize("entry", [AssembledSection("s", "S"), AssembledContext("c", "C"), tool("t")], ids=str)
def test_entries_are_frozen_values(entry: Any) -> None:
    """Entries cannot be changed in place; equal ones are equal, and they pickle."""
    with pytest.raises(AttributeError):
        entry.name = "x"
    assert pickle.loads(pickle.dumps(entry)) == entry
    assert dataclasses.replace(entry) == entry


def test_a_rendered_entry_is_still_equal_to_a_fresh_one() -> None:
    """Whether an entry was rendered before makes no difference to what it is."""
    section = AssembledSection("s", "{{x}}")
    render_prompt(PromptAssembly([section], variables={"x": "X"}))
    assert section == AssembledSection("s", "{{x}}")
    assert pickle.loads(pickle.dumps(section)) == section


# By hand


def by_hand() -> PromptAssembly:
    return PromptAssembly(
        [
            AssembledSection("a", "A {{v}}"),
            AssembledSection("none", "{{e}}"),
            AssembledSection("b", "{{v}}", None, True),
        ],
        [AssembledContext("c", "C {{v}}"), AssembledContext("none", ""), AssembledContext("d", "D")],
        [tool("t")],
        {"v": "V", "e": ""},
    )


def test_an_assembly_by_hand_renders() -> None:
    """An assembly needs no registry: sections are interpolated, empty ones dropped, the rest joined by a blank line."""
    assembly = by_hand()
    assert render_prompt(assembly) == "A V\n\n{{v}}"
    assert render_context_sections(assembly) == [("c", "C V"), ("d", "D")]
    opener = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots."
    assert render_context_snapshot(assembly) == f"{opener}\n\nC V\n\nD"
    rendering = render(assembly)
    assert rendering.text == render_prompt(assembly)
    assert rendering.snapshot == render_context_snapshot(assembly)
    assert rendering.tools == (tool("t"),)
    assert rendering.trace.stages == ()


def test_a_snapshot_of_nothing_is_empty() -> None:
    """Without a context that has something to say there is no snapshot, not even an opener."""
    assert render_context_snapshot(PromptAssembly()) == ""
    assert render_context_snapshot(PromptAssembly(contexts=[AssembledContext("c", "")])) == ""
    assert join_context_sections([]) == ""
    assert join_context_sections([("a", "")]) == ""
    assert join_context_sections([("a", ""), ("b", "B")]).endswith("snapshots.\n\nB")
    assert render(PromptAssembly()).text == ""


def test_what_a_registry_assembled_renders_alike_by_hand() -> None:
    """The functions render an assembly as the pipeline does, and after edits they follow these."""
    prompt = SystemPrompt(persona="P {{v}}")
    prompt.variable("v", "V")
    prompt.context("c", "C", order=1)
    assembly = prompt.assemble_sync()
    rendering = prompt.render_sync()
    assert (render_prompt(assembly), render_context_snapshot(assembly)) == (rendering.text, rendering.snapshot)
    assembly.sections.append(AssembledSection("x", "X"))
    assembly.variables["v"] = "W"
    assert render_prompt(assembly) == render(assembly).text == "P W\n\nX"


def test_a_rendering_does_not_change_with_its_assembly() -> None:
    """What was rendered stays as it was, spans and trace included, whatever happens to the assembly afterwards."""
    for assembly in (by_hand(), filled().assemble_sync()):
        rendering = render(assembly)
        text, tools = rendering.text, rendering.tools
        assembly.sections.clear()
        assembly.tools.clear()
        assembly.contexts.clear()
        assembly.variables.clear()
        assert (rendering.text, rendering.tools) == (text, tools)
        assert "".join(rendering.text[span.start : span.end] for span in rendering.spans) == text
        assert rendering.digest == rendering.digest
        assert render(assembly).text == ""


def filled() -> SystemPrompt:
    prompt = SystemPrompt(persona="P {{v}}")
    prompt.variable("v", "V")
    prompt.tools([tool("t")])
    return prompt


def test_an_assembly_tells_its_counts() -> None:
    """The text of an assembly says how much is in it."""
    assert repr(by_hand()) == "<PromptAssembly: 3 sections, 3 contexts, 1 tools, 2 variables>"


def test_extra_keys_compare_by_identity() -> None:
    """Two plugins that chose one name for a key do not meet."""
    one, other = ExtraKey("notes", str), ExtraKey("notes", str)
    assembly = PromptAssembly()
    assembly.extras[one] = "x"
    assert one != other
    assert other not in assembly.extras
    assert repr(one) == "ExtraKey('notes', str)"
