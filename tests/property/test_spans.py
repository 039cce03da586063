"""Spans say of every character who put it there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.model import is_name, rendered
from tests.support.strategies import VARIABLE_NAMES, fitting_texts, texts, values

from foreword import AssembledSection, PromptAssembly, Rendering, Spans, SystemPrompt, render


@dataclass(frozen=True)
class Entry:
    owner: str
    text: str
    verbatim: bool


entries = st.lists(
    st.one_of(
        st.builds(Entry, st.sampled_from(("p", "q")), fitting_texts, st.just(False)),
        st.builds(Entry, st.sampled_from(("p", "q")), values, st.just(True)),
    ),
    max_size=5,
)
held_values = st.fixed_dictionaries(dict.fromkeys(VARIABLE_NAMES, values))


def prompt_of(given_entries: list[Entry], held: dict[str, str]) -> SystemPrompt:
    """A registry whose entries are both sections and contexts, and whose values belong to `values`."""
    prompt = SystemPrompt()
    for name, value in held.items():
        prompt.owner("values").variable(name, value)
    for number, entry in enumerate(given_entries):
        view = prompt.owner(entry.owner)
        view.section(f"n{number}", entry.text, order=number + 1, verbatim=entry.verbatim)
        view.context(f"n{number}", entry.text, order=number, verbatim=entry.verbatim)
    return prompt


def both(rendering: Rendering) -> list[tuple[str, Spans]]:
    return [(rendering.text, rendering.spans), (rendering.snapshot, rendering.snapshot_spans)]


def escaped(literal: str) -> str:
    """A literal as a template spells it: every reference in it stood there as an escape."""
    for inside in [each.partition("}}")[0] for each in literal.split("{{")[1:]]:
        if is_name(inside):
            literal = literal.replace(f"{{{{{inside}}}}}", f"\0{inside}\1")
    return literal.replace("\0", "{{{{").replace("\1", "}}}}")


@given(entries, held_values)
def test_spans_cover_the_text_without_gap_or_overlap(given_entries: list[Entry], held: dict[str, str]) -> None:
    """The first begins at 0, each begins where the one before ends, the last ends with the text; none is empty."""
    for text, spans in both(prompt_of(given_entries, held).render_sync()):
        borders = [0, *(span.end for span in spans)]
        assert [span.start for span in spans] == borders[:-1]
        assert borders[-1] == len(text)
        assert all(span.start < span.end for span in spans)


@given(entries, held_values)
def test_each_span_stands_for_what_its_owner_gave(given_entries: list[Entry], held: dict[str, str]) -> None:
    """A variable's is its value, a literal's stands in the template of its entry, a separator is the assembler's."""
    for text, spans in both(prompt_of(given_entries, held).render_sync()):
        for span in spans:
            stretch = text[span.start : span.end]
            if span.kind == "separator":
                assert span.owner == "assembler"
                assert (span.section, span.variable) == (None, None)
                assert stretch.startswith("Current runtime context.") or stretch == "\n\n"
                continue
            entry = given_entries[int(str(span.section)[1:])]
            assert span.section_origin is not None
            assert span.section_origin.owner == entry.owner
            if span.kind == "variable":
                assert (span.owner, stretch) == ("values", held[str(span.variable)])
                assert f"{{{{{span.variable}}}}}" in entry.text
            else:
                assert (span.owner, span.variable) == (entry.owner, None)
                assert (stretch if entry.verbatim else escaped(stretch)) in entry.text


@given(entries, held_values)
def test_every_filled_entry_has_its_spans_in_one_stretch_and_in_order(
    given_entries: list[Entry], held: dict[str, str]
) -> None:
    """Between two filled entries there is one separator, and nowhere else but in front of a snapshot."""
    filled = [
        f"n{number}"
        for number, entry in enumerate(given_entries)
        if (entry.text if entry.verbatim else rendered(entry.text, held))
    ]
    expected = [name for filled_name in filled for name in (None, filled_name)]
    rendering = prompt_of(given_entries, held).render_sync()
    for spans, told in ((rendering.spans, expected[1:]), (rendering.snapshot_spans, expected)):
        names = [span.section for span in spans]
        assert [name for at, name in enumerate(names) if name is None or names[:at][-1:] != [name]] == told


@given(entries, held_values)
def test_byte_positions_are_those_of_utf8(given_entries: list[Entry], held: dict[str, str]) -> None:
    """Cutting the encoded text by them gives the same stretches."""
    for text, spans in both(prompt_of(given_entries, held).render_sync()):
        data = text.encode()
        in_bytes = spans.utf8()
        assert [data[span.start : span.end].decode() for span in in_bytes] == [
            text[span.start : span.end] for span in spans
        ]
        assert [(span.kind, span.origin, span.section) for span in in_bytes] == [
            (span.kind, span.origin, span.section) for span in spans
        ]


@given(entries, held_values, st.integers(0, 30), st.integers(0, 30))
def test_a_stretch_of_the_text_has_the_spans_of_its_characters(
    given_entries: list[Entry], held: dict[str, str], start: int, size: int
) -> None:
    """`between` cuts the spans to the stretch, `at` gives the one of a position, `owner_of` those of a text."""
    rendering = prompt_of(given_entries, held).render_sync()
    text, spans = rendering.text, rendering.spans
    end = min(start + size, len(text))
    cut = spans.between(start, end)
    assert "".join(text[span.start : span.end] for span in cut) == text[start:end]
    characters = [(spans.at(place).origin, spans.at(place).section) for place in range(start, end)]
    assert [(span.origin, span.section) for span in cut for _ in range(span.start, span.end)] == characters
    if text[start:end]:
        found = text.find(text[start:end])
        assert rendering.owner_of(text[start:end]) == spans.between(found, found + end - start)


@given(held_values, st.dictionaries(st.sampled_from(VARIABLE_NAMES), values, max_size=3), st.booleans())
def test_what_a_listener_put_there_has_the_listener_as_its_origin(
    held: dict[str, str], given_values: dict[str, str], late: bool
) -> None:
    """A value that it changed, a section that it added or edited; a value that it left as it was stays its owner's."""
    prompt = prompt_of([Entry("p", "".join(f"<{{{{{name}}}}}>" for name in VARIABLE_NAMES), False)], held)
    prompt.section("edited", "before", order=5)

    async def listener(assembly: PromptAssembly, context: object, call_next: Any) -> PromptAssembly:
        if late:
            await call_next()
        assembly.variables.update(given_values)
        assembly.sections.swap("edited", text="after {{a}}!")
        assembly.sections.append(AssembledSection("added", "added"))
        return assembly if late else await call_next()

    prompt.owner("l").on_assemble(listener)
    for span in prompt.render_sync().spans:
        name = span.variable
        if name is not None:
            changed = given_values.get(name, held[name]) != held[name]
            assert (span.owner, span.listener is not None) == (("l", True) if changed else ("values", False))
        elif span.kind == "literal":
            assert span.owner == ("p" if span.section == "n0" else "l")
            assert (span.listener is not None) == (span.section != "n0")


def lines_of(template: str, held: dict[str, str]) -> list[int | None]:
    """For each character that a fitting template renders to, the line it comes from; None inside a value."""
    out: list[int | None] = []
    at, line = 0, 1
    while at < len(template):
        rest = template[at:]
        for name in held:
            if rest.startswith(f"{{{{{{{{{name}}}}}}}}}"):
                out += [line] * (len(name) + 4)
                at += len(name) + 8
                break
            if rest.startswith(f"{{{{{name}}}}}"):
                out += [None] * len(held[name])
                at += len(name) + 4
                break
        else:
            out.append(line)
            line += rest[0] == "\n"
            at += 1
    return out


@given(st.lists(st.one_of(fitting_texts, st.just("\n")), max_size=5).map("\n".join), held_values)
def test_a_text_from_a_file_tells_the_line_of_each_of_its_characters(template: str, held: dict[str, str]) -> None:
    """Lines count on inside a file; a value has the line of the call that registered it."""
    template = template.replace("\r", "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.md"
        path.write_bytes(f"{template}\n".encode())
        prompt = SystemPrompt()
        for name, value in held.items():
            prompt.variable(name, value)
        prompt.section("s", path, order=1)
        rendering = prompt.render_sync()
    told: list[int | None] = []
    for place in range(len(rendering.text)):
        (span,) = rendering.spans.between(place, place + 1)
        assert span.source is not None
        is_ours = span.source.file.endswith("text.md")
        assert is_ours == (span.kind == "literal")
        told.append(span.source.line if is_ours else None)
    assert told == lines_of(template, held)


@given(entries, held_values)
def test_an_assembly_made_by_hand_has_spans_of_the_same_places(
    given_entries: list[Entry], held: dict[str, str]
) -> None:
    """Without a registry only the variables' owners are unknown."""

    def places(spans: Spans) -> list[tuple[int, int, str, str | None, str | None]]:
        return [(span.start, span.end, span.kind, span.section, span.variable) for span in spans]

    assembly = prompt_of(given_entries, held).assemble_sync()
    rendering = render(assembly)
    by_hand = render(PromptAssembly(assembly.sections, assembly.contexts, (), dict(assembly.variables)))
    assert (by_hand.text, by_hand.snapshot, by_hand.digest) == (rendering.text, rendering.snapshot, rendering.digest)
    assert places(by_hand.spans) == places(rendering.spans)
    assert places(by_hand.snapshot_spans) == places(rendering.snapshot_spans)


@given(texts)
def test_any_verbatim_text_is_one_literal(text: str) -> None:
    """Whatever stands in it; an empty text has no span."""
    text = text.encode(errors="ignore").decode()
    prompt = SystemPrompt()
    prompt.section("s", text, order=1, verbatim=True)
    spans = prompt.render_sync().spans
    assert [(span.start, span.end, span.kind, span.section) for span in spans] == (
        [(0, len(text), "literal", "s")] if text else []
    )
