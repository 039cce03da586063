"""What is sensitive is masked for whoever is not to see it, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foreword import SystemPrompt
from foreword.prompt.render import SNAPSHOT_OPENER


def prompt() -> SystemPrompt:
    made = SystemPrompt()
    made.variable("code", "hunter2", sensitive=True)
    made.variable("name", "Ada")
    return made


def test_a_value_in_a_section() -> None:
    """A section that holds a sensitive value reads with the value masked; the others need no mask."""
    made = prompt()
    made.section("a", "Nothing.", order=1)
    made.section("b", "{{name}}: {{code}}{{code}}.", order=2)
    made.section("empty", "", order=3)
    made.section("c", "{{code}}", order=4)
    made.section("d", "{{name}}", order=5)
    rendering = made.render_sync()
    assert dict(rendering.masks) == {1: "Ada: [sensitive][sensitive].", 2: "[sensitive]"}
    assert rendering.masked_spans.text == "Nothing.\n\nAda: [sensitive][sensitive].\n\n[sensitive]\n\nAda"
    assert "hunter2" in rendering.text


def test_a_context() -> None:
    """A sensitive context is masked as a whole, another one where it holds a sensitive value."""
    made = prompt()
    made.context("door", lambda: "The door: {{name}} {{code}}", sensitive=True, order=1)
    made.context("git", "On main, {{code}}", order=2)
    made.context("time", "Noon", order=3)
    rendering = made.render_sync()
    assert dict(rendering.snapshot_masks) == {0: "[sensitive]", 1: "On main, [sensitive]"}
    assert rendering.masked_snapshot_spans.text == f"{SNAPSHOT_OPENER}\n\n[sensitive]\n\nOn main, [sensitive]\n\nNoon"
    assert rendering.masked_spans.text == rendering.text


def test_what_comes_and_goes() -> None:
    """What is sensitive is what is in force: a scope's shadow may be, or may not."""
    made = SystemPrompt()
    made.section("a", "{{code}}", order=1)
    plain = made.variable("code", "4711")
    assert dict(made.render_sync().masks) == {}
    plain.close()
    made.variable("code", "hunter2", sensitive=True)
    assert dict(made.render_sync().masks) == {0: "[sensitive]"}


def test_nothing_is_sensitive() -> None:
    """Without anything sensitive there are no masks, and the texts are the same."""
    made = SystemPrompt()
    made.section("a", "Hello.", order=1)
    made.context("c", "World.", order=1)
    rendering = made.render_sync()
    assert dict(rendering.masks) == dict(rendering.snapshot_masks) == {}
    assert (rendering.masked_spans, rendering.masked_snapshot_spans) == (rendering.spans, rendering.snapshot_spans)


@given(st.lists(st.lists(st.sampled_from(["{{a}}", "{{b}}", "x", "\n\n", " "]), max_size=4), max_size=5))
def test_masked_parts_are_the_parts_masked(told: list[list[str]]) -> None:
    """Each part reads as it would if the value itself were the mask."""
    texts = ["".join(each) for each in told]
    made, plain = SystemPrompt(), SystemPrompt()
    made.variable("a", "hunter2", sensitive=True)
    plain.variable("a", "[sensitive]")
    for each in (made, plain):
        each.variable("b", "B")
        for number, text in enumerate(texts):
            each.section(f"s{number}", text, order=number)
    rendering, other = made.render_sync(), plain.render_sync()
    assert rendering.masked_spans.text == other.text
    assert [(span.start, span.end, span.section) for span in rendering.masked_spans] == [
        (span.start, span.end, span.section) for span in other.spans
    ]
    parts = [rendering.masks.get(at, part) for at, part in enumerate(rendering.sections)]
    assert tuple(parts) == other.sections
