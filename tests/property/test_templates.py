"""Rendering is what the rules of templates say, as a naive model reads them: one character at a time."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.model import Fault, is_name, rendered, rendered_verbatim
from tests.support.strategies import VARIABLE_NAMES, fitting_texts, template_texts, texts, values

from foreword import (
    AssembledContext,
    AssembledSection,
    PromptAssembly,
    RenderError,
    SystemPrompt,
    ToolSchema,
    render_context_snapshot,
    render_prompt,
)

some_values = st.fixed_dictionaries(
    {"none": st.none()}, optional={name: st.one_of(values, values, st.none(), texts) for name in VARIABLE_NAMES}
)


def answer(section: AssembledSection, held: dict[str, str | None]) -> str | Fault:
    """The text of one section, or its fault."""
    try:
        return render_prompt(PromptAssembly(sections=[section], variables=held))
    except RenderError as error:
        return Fault(error.kind, error.line, error.column)


def test_every_short_text_of_braces_names_and_blanks_renders_as_the_model_says() -> None:
    """No combination of two braces, a name and something else is read in another way than the rules say."""
    pieces = ("{{", "}}", "{", "}", "a", " ")
    for length in range(6):
        for chosen in itertools.product(pieces, repeat=length):
            text = "".join(chosen)
            assert answer(AssembledSection("s", text), {"a": "{{a}}"}) == rendered(text, {"a": "{{a}}"}), text


@given(template_texts, some_values)
@example("{{{{a}}}}}", {})
@example("{{{{{a}}}}}", {"a": "x"})
@example("{{{{ a }}}}", {"a": "x"})
@example("a {{ b", {})
@example("{{}", {})
def test_texts_rich_in_braces_render_as_the_model_says(text: str, held: dict[str, str | None]) -> None:
    """Text, kind of fault, line and column are what a reading one character at a time gives."""
    assert answer(AssembledSection("s", text), held) == rendered(text, held)


@given(texts, some_values)
@example("{{{{a}}}}\n{{{{a}}}} \ud800", {})
@example("{{a}}", {"a": "x\udfff"})
@example("\udc00 {{ a }}", {"a": "x"})
def test_any_text_renders_as_the_model_says(text: str, held: dict[str, str | None]) -> None:
    """Lone surrogates and control characters included, in texts and in values."""
    assert answer(AssembledSection("s", text), held) == rendered(text, held)


@given(texts, some_values)
def test_a_verbatim_text_renders_as_it_is(text: str, held: dict[str, str | None]) -> None:
    """Whatever it looks like; only what UTF-8 cannot spell is refused."""
    assert answer(AssembledSection("s", text, verbatim=True), held) == rendered_verbatim(text)


@given(st.lists(st.tuples(fitting_texts, st.booleans()), max_size=5), st.lists(values, min_size=4, max_size=4))
def test_a_registry_renders_sections_and_contexts_as_the_model_joins_them(
    given_texts: list[tuple[str, bool]], given_values: list[str]
) -> None:
    """Every text is interpolated, empty ones go, the rest is joined by one blank line; the same for the snapshot."""
    held = dict(zip(VARIABLE_NAMES, given_values, strict=True))
    prompt = SystemPrompt()
    for name, value in held.items():
        prompt.variable(name, value)
    for number, (text, verbatim) in enumerate(given_texts):
        prompt.section(f"s{number}", text, order=number + 1, verbatim=verbatim)
        prompt.context(f"c{number}", text, order=-number, verbatim=verbatim)
    parts = [text if verbatim else str(rendered(text, held)) for text, verbatim in given_texts]
    opener = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots."
    told = [part for part in reversed(parts) if part]
    rendering = prompt.render_sync()
    assert rendering.text == "\n\n".join(filter(None, parts))
    assert rendering.snapshot == ("\n\n".join([opener, *told]) if told else "")


@given(template_texts, some_values)
def test_the_same_faults_are_told_by_a_registry_with_the_entry_they_are_in(
    text: str, held: dict[str, str | None]
) -> None:
    """A registered section, a provider's answer and a context tell the fault that the model finds, at its place."""
    expected = rendered(text, held)
    for kind, given_text in (("section", text), ("section", lambda: text), ("context", text)):
        prompt = SystemPrompt()
        for name, value in held.items():
            prompt.variable(name, value)
        (prompt.section if kind == "section" else prompt.context)("it", given_text, order=1)
        if isinstance(expected, str):
            rendering = prompt.render_sync()
            assert (rendering.text if kind == "section" else rendering.snapshot).endswith(expected)
            continue
        with pytest.raises(RenderError) as caught:
            prompt.render_sync()
        error = caught.value
        assert (error.kind, error.line, error.column) == (expected.kind, expected.line, expected.column)
        assert (error.entry.kind, error.entry.name, error.entry.owner) == (kind, "it", "main")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("well {{a}}", "well", "{{unknown}}", "{{ malformed }}", "{{none}}", "\ud800")),
            st.sampled_from(("static", "asked", "conditional", "scoped", "needs a tool")),
        ),
        max_size=6,
    ),
    st.booleans(),
    st.sampled_from((0, 0, 40)),
)
def test_of_several_faulty_sections_the_first_in_the_prompt_is_told(
    placed: list[tuple[str, str]], listened: bool, crowd: int
) -> None:
    """Wherever their texts come from, however many others there are, and whether or not a listener looked at them."""
    prompt = SystemPrompt()
    scope = prompt.scope("scope")
    prompt.variable("a", "A")
    prompt.variable("none", None)
    prompt.tools([ToolSchema("t", "", {})])
    for number in range(crowd):
        prompt.section(f"crowd {number}", "{{a}}", order=-1 - number)
    for place, (text, how) in enumerate(placed):
        options: dict[str, Any] = {
            "conditional": {"when": lambda context: True},
            "needs a tool": {"requires_tools": ["t"]},
        }.get(how, {})
        given_text: Any = (lambda text=text: text) if how == "asked" else text
        (scope if how == "scoped" else prompt).section(f"s{place}", given_text, order=place + 1, **options)

    async def look(assembly: PromptAssembly, context: object, call_next: Any) -> PromptAssembly:
        assert assembly.sections is not None
        return await call_next()

    if listened:
        prompt.on_assemble(look)
    faulty = [f"s{place}" for place, (text, _) in enumerate(placed) if "well" not in text]
    if not faulty:
        assert scope.render_sync().text.count("well") == len(placed)
        return
    with pytest.raises(RenderError) as caught:
        scope.render_sync()
    assert caught.value.entry.name == faulty[0]


@given(values, values)
def test_values_are_spliced_in_and_never_read_again(one: str, other: str) -> None:
    """A value that looks like a reference, an escape, a group of a regular expression or a format stays what it is."""
    held: dict[str, str | None] = {"a": one, "b": other}
    text = "A {{a}} B {{b}} {{a}}"
    assert answer(AssembledSection("s", text), held) == f"A {one} B {other} {one}"


@given(st.text("{}ab_ \n", max_size=40).filter(lambda text: "}}" not in text))
def test_without_a_close_all_braces_are_prose(text: str) -> None:
    """Where no `}}` stands anywhere, a text renders as it is."""
    assert answer(AssembledSection("s", text), {}) == text


@given(st.text("ab1_", min_size=1, max_size=8).filter(is_name), fitting_texts)
def test_the_escape_writes_a_reference_that_nobody_resolves(name: str, value: str) -> None:
    """`{{{{name}}}}` renders `{{name}}`, whether or not there is such a variable."""
    for held in ({}, {name: value}):
        assert answer(AssembledSection("s", f"use {{{{{{{{{name}}}}}}}}}!"), dict(held)) == f"use {{{{{name}}}}}!"


@given(template_texts, template_texts, some_values)
def test_contexts_are_read_like_sections(one: str, other: str, held: dict[str, str | None]) -> None:
    """The snapshot has the fault of its first faulty context, or all its texts."""
    found = [rendered(text, held) for text in (one, other)]
    assembly = PromptAssembly(
        contexts=[AssembledContext("one", one), AssembledContext("other", other)], variables=dict(held)
    )
    fault = next((each for each in found if isinstance(each, Fault)), None)
    if fault is None:
        assert render_context_snapshot(assembly).split("\n\n", 1)[1:] == (
            ["\n\n".join(str(each) for each in found if each)] if any(found) else []
        )
        return
    with pytest.raises(RenderError) as caught:
        render_context_snapshot(assembly)
    assert (caught.value.kind, caught.value.line, caught.value.column) == (fault.kind, fault.line, fault.column)


LONG = 200_000


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        "}",
        "{{",
        "{{a",
        "{{ ",
        "{{{a",
        "{{{{",
        "{{{{a",
        "{{{{a}}}",
        "{{a}}",
        "{{{{a}}}}",
        "}}",
        "{}",
        "{{a}}{",
        "{{a\n",
    ],
)
@pytest.mark.parametrize("tail", ["", "}}", "x"])
def test_long_runs_of_braces_are_read_in_one_go(piece: str, tail: str) -> None:
    """200 kB of the same few braces render, or tell their fault, without a look back for each of them."""
    text = piece * (LONG // len(piece)) + tail
    found = answer(AssembledSection("s", text), {"a": ""})
    assert isinstance(found, Fault) or len(found) <= len(text)


def test_a_long_name_in_braces_is_told_shortly() -> None:
    """An unknown name of 200 kB makes no message of 200 kB, and no search for its like."""
    with pytest.raises(RenderError) as caught:
        render_prompt(PromptAssembly(sections=[AssembledSection("s", f"{{{{{'a' * LONG}}}}}")], variables={"b": ""}))
    assert len(str(caught.value)) < 1000
