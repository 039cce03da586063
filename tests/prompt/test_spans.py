"""Spans: who put which stretch there, without gap or overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.short import listener

from foreword import (
    AssembledSection,
    Origin,
    PromptAssembly,
    Rendering,
    Source,
    Spans,
    SystemPrompt,
    render,
)
from foreword.errors import TextNotFoundError

HERE = "tests/prompt/test_spans.py"


def told(rendering: Rendering) -> list[tuple[str, str, str]]:
    """Kind, owner and text of each span."""
    return [(span.kind, span.owner, rendering.text[span.start : span.end]) for span in rendering.spans]


def many_owners() -> SystemPrompt:
    prompt = SystemPrompt(persona="You are {{name}}.")
    prompt.owner("names").variable("name", "Ada")
    prompt.owner("rules").section("rules", "{{name}}, be {{how}}{{none}}!", order=1)
    prompt.owner("names").variable("none", "")
    prompt.owner("empty").section("empty", "{{none}}", order=2)
    prompt.owner("tone").section("tone", "{{{{x}}}} ä😀", order=3)
    prompt.owner("how").variable("how", lambda: "kind")
    return prompt


def test_every_character_has_an_owner() -> None:
    """Literals are the section's owner's, values the variable's, blank lines the assembler's; what renders to nothing
    has no span."""
    assert told(many_owners().render_sync()) == [
        ("literal", "main", "You are "),
        ("variable", "names", "Ada"),
        ("literal", "main", "."),
        ("separator", "assembler", "\n\n"),
        ("variable", "names", "Ada"),
        ("literal", "rules", ", be "),
        ("variable", "how", "kind"),
        ("literal", "rules", "!"),
        ("separator", "assembler", "\n\n"),
        ("literal", "tone", "{{x}} ä😀"),
    ]


def test_spans_know_section_variable_and_place() -> None:
    """A span tells section and variable, and the line that registered its text or its value."""
    prompt = SystemPrompt()
    view = prompt.scope("agent").owner("plugin")
    view.section("s", "a {{v}}", order=1)
    prompt.variable("v", "V")
    literal, value = view.render_sync().spans
    assert (literal.section, literal.variable, value.section, value.variable) == ("s", None, "s", "v")
    assert (literal.origin.scope, value.origin.scope) == ("agent", None)
    assert literal.source is not None
    assert value.source is not None
    assert (literal.source.file, value.source.file) == (HERE, HERE)
    assert value.source.line == literal.source.line + 1
    assert str(value.source) == f"{HERE}:{value.source.line}"


def test_a_decorated_function_is_traced_to_its_decorator() -> None:
    """The source of a decorated provider is the line that registered it."""
    prompt = SystemPrompt()

    @prompt.section("s", order=1)
    def provider() -> str:
        return "x"

    (span,) = prompt.render_sync().spans
    assert span.source is not None
    assert span.source.line == provider.__code__.co_firstlineno


def test_a_verbatim_text_is_one_span() -> None:
    """Nothing is looked up in a verbatim text."""
    prompt = SystemPrompt()
    prompt.section("s", "{{a}} {{{{b}}}}\n\n{{ c }}", order=1, verbatim=True)
    (span,) = prompt.render_sync().spans
    assert (span.kind, span.start, span.end) == ("literal", 0, 24)


def test_spans_of_a_shadow_are_the_shadow_s() -> None:
    """In a scope a shadowing section's and a shadowing variable's owner count."""
    prompt = SystemPrompt()
    prompt.section("s", "{{v}}", order=1)
    prompt.variable("v", "global")
    agent = prompt.scope("agent")
    agent.variable("v", "mine")
    assert [span.owner for span in agent.render_sync().spans] == ["agent"]
    assert [span.owner for span in prompt.render_sync().spans] == ["main"]
    agent.section("s", "own", order=1)
    (span,) = agent.render_sync().spans
    assert (span.owner, span.origin.layer) == ("agent", "scope agent")


def test_the_snapshot_has_spans_of_its_own() -> None:
    """The opener of the snapshot and its blank lines are the assembler's, the rest its contributors'."""
    prompt = SystemPrompt()
    prompt.owner("git").context("git", "on {{branch}}", order=1)
    prompt.context("empty", "", order=2)
    prompt.owner("clock").context("now", "noon", order=3)
    prompt.variable("branch", "main")
    rendering = prompt.render_sync()
    texts = [rendering.snapshot[span.start : span.end] for span in rendering.snapshot_spans]
    assert "".join(texts) == rendering.snapshot
    assert [(span.owner, text) for span, text in zip(rendering.snapshot_spans, texts, strict=True)][1:] == [
        ("git", "on "),
        ("main", "main"),
        ("assembler", "\n\n"),
        ("clock", "noon"),
    ]
    assert texts[0].startswith("Current runtime context.")
    assert rendering.snapshot_spans[0].owner == "assembler"
    assert tuple(SystemPrompt().render_sync().snapshot_spans) == ()


# Looking up


def test_at_finds_the_span_of_a_position() -> None:
    """`at` gives the span that holds a code point, and refuses positions outside the text."""
    rendering = many_owners().render_sync()
    for span in rendering.spans:
        for position in range(span.start, span.end):
            assert rendering.spans.at(position) == span
    for position in (-1, len(rendering.text), 10**6):
        with pytest.raises(IndexError, match=str(position)):
            rendering.spans.at(position)
    with pytest.raises(IndexError):
        Spans().at(0)


def test_between_gives_the_spans_of_a_stretch() -> None:
    """`between` gives the spans that share a character with a stretch, cut to it, and none for an empty one."""
    spans = many_owners().render_sync().spans
    assert [(span.start, span.end, span.owner) for span in spans.between(7, 9)] == [(7, 8, "main"), (8, 9, "names")]
    assert spans.between(0, 10**6) == tuple(spans)
    assert spans.between(8, 8) == ()


def test_a_cut_span_knows_the_line_it_begins_at(tmp_path: Path) -> None:
    """Of a text that is a file, a cut span's source is the line of the file at which its part begins."""
    file = tmp_path / "text.md"
    file.write_text("one\ntwo\nthree\n")
    prompt = SystemPrompt()
    prompt.section("s", file, order=1)
    (span,) = prompt.render_sync().owner_of("three")
    assert span.source is not None
    assert (span.start, span.source.line) == (8, 3)


def test_bytes_in_place_of_code_points() -> None:
    """`utf8` gives the same spans with positions in the encoded text."""
    rendering = many_owners().render_sync()
    encoded = rendering.text.encode()
    for span, counted in zip(rendering.spans, rendering.spans.utf8(), strict=True):
        assert encoded[counted.start : counted.end].decode() == rendering.text[span.start : span.end]
        assert (counted.kind, counted.owner, counted.source) == (span.kind, span.owner, span.source)
    assert rendering.spans.utf8()[-1].end == len(encoded) > len(rendering.text)


def test_owner_of_finds_who_said_it() -> None:
    """`owner_of` gives the spans behind the first place where a text stands, to the letter."""
    rendering = many_owners().render_sync()
    assert [span.owner for span in rendering.owner_of("be kind!")] == ["rules", "how", "rules"]
    assert [span.owner for span in rendering.owner_of("Ada")] == ["names"]
    assert rendering.owner_of("Ada")[0].start == 8
    assert [span.owner for span in rendering.owner_of("!\n\n{")] == ["rules", "assembler", "tone"]
    assert len(rendering.owner_of(rendering.text)) == len(rendering.spans)
    for text in ("be Kind", "", "You are  Ada"):
        with pytest.raises(TextNotFoundError, match="to the letter"):
            rendering.owner_of(text)


# Sources


def test_a_source_belongs_to_a_distribution() -> None:
    """A source in an installed package is named relative to it, with its distribution and version; your own has none."""
    installed = Source(pytest.__file__, 3)
    assert installed.file == "pytest/__init__.py"
    assert installed.distribution == f"pytest {pytest.__version__}"
    prompt = SystemPrompt(persona="P")
    (span,) = prompt.render_sync().spans
    assert span.source is not None
    assert span.source.distribution is None


def test_origins_and_sources_are_values() -> None:
    """Origins and sources compare by content and tell their layer and place."""
    assert Origin("a", "b") == Origin("a", "b")
    assert (Origin("a").layer, Origin("a", "b").layer) == ("global", "scope b")
    assert Source("a/b.md", 3) == Source("a/b.md", 3)
    assert str(Source("a/b.md", 3)) == "a/b.md:3"


def test_a_hand_made_assembly_has_spans_too() -> None:
    """Sections without an origin are the assembler's, and the spans cover the text all the same."""
    rendering = render(PromptAssembly([AssembledSection("s", "a {{v}}")], variables={"v": "V"}))
    assert told(rendering) == [("literal", "assembler", "a "), ("variable", "assembler", "V")]


def test_spans_follow_the_final_order() -> None:
    """After a listener moved, dropped and added sections the spans are those of the result."""
    prompt = SystemPrompt()
    for name in "abc":
        prompt.owner(name).section(name, f"{name}{{{{v}}}}", order=1)
    prompt.owner("v").variable("v", "1")

    def change(assembly: Any) -> None:
        assembly.sections.reverse()
        assembly.sections.drop("b")
        assembly.sections.insert(1, AssembledSection("x", "x{{v}}"))

    prompt.owner("plugin").on_assemble(listener(change))
    rendering = prompt.render_sync()
    assert rendering.text == "c1\n\nx1\n\na1"
    owners = [owner for kind, owner, _ in told(rendering) if kind != "separator"]
    assert owners == ["c", "v", "plugin", "v", "a", "v"]
