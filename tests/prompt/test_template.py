"""The rules of `{{name}}`, line by line, and what is told when a text breaks them."""

from __future__ import annotations

import pytest
from tests.support.short import listener

from foreword import (
    AssembledSection,
    EntryRef,
    LoneSurrogateError,
    MalformedReferenceError,
    NotAStringError,
    PromptAssembly,
    RenderError,
    SystemPrompt,
    UnknownVariableError,
    ValuelessVariableError,
    render,
)

VALUES = {"x": "X", "name": "Ada", "long_name2": "L", "empty": "", "none": None, "tricky": "{{x}} }} {{{{x}}}}"}


def prompt_of(text: str, **options: bool) -> SystemPrompt:
    prompt = SystemPrompt()
    for name, value in VALUES.items():
        prompt.variable(name, value)
    prompt.section("s", text, order=1, **options)
    return prompt


def rendered(text: str, **options: bool) -> str:
    """The text as a section renders it; a context must say the same."""
    prompt = prompt_of(text, **options)
    prompt.context("c", text, order=1, **options)
    rendering = prompt.render_sync()
    opener, _, snapshot = rendering.snapshot.partition("\n\n")
    assert snapshot == rendering.text
    assert opener.startswith("Current runtime context.") == bool(rendering.text)
    return rendering.text


def fault(text: str) -> RenderError:
    """The fault that a section's text is told to have."""
    with pytest.raises(RenderError) as caught:
        prompt_of(text).render_sync()
    return caught.value


RENDERS = {
    # rule 1: the escape, where {{{{, a variable name and }}}} stand
    "{{{{x}}}}": "{{x}}",
    "{{{{nobody}}}}": "{{nobody}}",
    "{{{{long_name2}}}}": "{{long_name2}}",
    "{{{{x}}}}}": "{{x}}}",
    "{{{{x}}}}}}": "{{x}}}}",
    "{{{{x}}}}{{{{x}}}}": "{{x}}{{x}}",
    "{{{{x}}}}{{x}}": "{{x}}X",
    "{{x}}{{{{x}}}}": "X{{x}}",
    "a{{{{x}}}}b": "a{{x}}b",
    "use {{{{city}}}} here": "use {{city}} here",
    "{ {{{{x}}}} }": "{ {{x}} }",
    # rule 2: a group without a brace inside
    "{{x}}": "X",
    "{{x}}{{name}}": "XAda",
    "Hi {{name}}!": "Hi Ada!",
    "{{long_name2}}": "L",
    "[{{empty}}]": "[]",
    "{{x}}}": "X}",
    "{{x}}}}": "X}}",
    "{x}": "{x}",
    "{{tricky}}": "{{x}} }} {{{{x}}}}",
    "a\n{{x}}\nb": "a\nX\nb",
    # rule 3: without a later }} two braces are prose
    "{{": "{{",
    "a {{ b": "a {{ b",
    "{{x}} then {{ alone": "X then {{ alone",
    "{{{{": "{{{{",
    "{{{{{": "{{{{{",
    "{{x": "{{x",
    "{{x}": "{{x}",
    "{{x} }": "{{x} }",
    "}} {{": "}} {{",
    "}}": "}}",
    "x }} y": "x }} y",
    # prose with single braces
    '{"k": 1}': '{"k": 1}',
    '{"k": {"l": 1} }': '{"k": {"l": 1} }',
    "({ page }) => ${HOME} {% if %} {# c #}": "({ page }) => ${HOME} {% if %} {# c #}",
    "%s {0} $name \\1 \\g<0>": "%s {0} $name \\1 \\g<0>",
    "": "",
    " \n ": " \n ",
}


@pytest.mark.parametrize("text", RENDERS, ids=repr)
def test_what_renders(text: str) -> None:
    """Escapes, references and prose render as the rules say, in sections and contexts alike."""
    assert rendered(text) == RENDERS[text]


MALFORMED = {
    # rule 1 asks for a name exactly
    "{{{{ x }}}}": 1,
    "{{{{x }}}}": 1,
    "{{{{X}}}}": 1,
    "{{{{}}}}": 1,
    "{{{{x}} }}": 1,
    "{{{{{x}}}}}": 1,
    "{{{{x}}}": 1,
    "{{{{x}}": 1,
    "{{{{{{x}}}}}}": 1,
    # rule 2: the inside is no variable name
    "{{}}": 1,
    "{{ }}": 1,
    "{{ x }}": 1,
    "{{x }}": 1,
    "{{\nx}}": 1,
    "{{X}}": 1,
    "{{1x}}": 1,
    "{{_x}}": 1,
    "{{x-y}}": 1,
    "{{x.y}}": 1,
    "{{x()}}": 1,
    "{{x!r}}": 1,
    "{{x:>5}}": 1,
    "{{x|upper}}": 1,
    "{{#if x}}": 1,
    "{{> partial}}": 1,
    "{{__class__}}": 1,
    "{{x٣}}": 1,
    "{{ä}}": 1,
    # rule 3: no group starts, and a }} follows somewhere
    "{{{x}}}": 1,
    "{{ { }}": 1,
    "{{{ x }}": 1,
    "{{x} }}": 1,
    "a {{ b\n\nc }} d": 3,
    "{{ {{x}}": 1,
    "{{a{b}}": 1,
    '{"a": {{"b": 1}}}': 7,
    # behind what is fine
    "{{x}} {{ x }}": 7,
    "{{{{x}}}} {{{x}}}": 11,
    "{{{{x}}}}}{{}}": 11,
}


@pytest.mark.parametrize("text", MALFORMED, ids=repr)
def test_what_is_malformed(text: str) -> None:
    """Double braces that are no reference, while a close follows, are an error at their place; never prose, never a
    value."""
    error = fault(text)
    assert isinstance(error, MalformedReferenceError)
    assert error.kind == "malformed_reference"
    assert (error.line, error.column) == (1, MALFORMED[text])


@pytest.mark.parametrize("text", [*MALFORMED, *RENDERS], ids=repr)
def test_verbatim_is_no_template(text: str) -> None:
    """A verbatim text renders as it is, whatever braces it holds."""
    assert rendered(text, verbatim=True) == text


def test_escapes_are_undone_once() -> None:
    """What an escape emits is not read again, and neither is a value."""
    prompt = SystemPrompt()
    prompt.variable("x", "{{{{x}}}}")
    prompt.section("s", "{{{{x}}}} {{x}}", order=1)
    assert prompt.render_sync().text == "{{x}} {{{{x}}}}"


# Unknown and valueless


@pytest.mark.parametrize("name", ["nobody", "constructor", "x1", "nam"])
def test_an_unknown_name_is_an_error(name: str) -> None:
    """A reference that spells no registered variable is never dropped or left as it is."""
    error = fault(f"a {{{{{name}}}}}")
    assert isinstance(error, UnknownVariableError)
    assert (error.kind, error.name, error.known) == ("unknown_variable", name, tuple(sorted(VALUES)))


@pytest.mark.parametrize(
    ("written", "meant"), [("nmae", "name"), ("names", "name"), ("long_name", "long_name2"), ("emtpy", "empty")]
)
def test_an_unknown_name_is_told_the_nearest_one(written: str, meant: str) -> None:
    """The error suggests the nearest known name and lists those there are."""
    message = str(fault(f"{{{{{written}}}}}"))
    assert f'did you mean "{meant}"?' in message
    assert "known variables: empty, long_name2, name, none, tricky, x" in message


def test_long_names_get_no_suggestion() -> None:
    """For a name of more than 64 characters nothing is guessed, and the message stays short."""
    prompt = SystemPrompt()
    prompt.variable("a" * 65, "A")
    prompt.section("s", f"{{{{{'a' * 66}}}}}", order=1)
    with pytest.raises(UnknownVariableError) as caught:
        prompt.render_sync()
    assert "did you mean" not in str(caught.value)
    for known, written in ((63, 64), (64, 63)):
        prompt = SystemPrompt()
        prompt.variable("a" * known, "A")
        prompt.section("s", f"{{{{{'a' * written}}}}}", order=1)
        with pytest.raises(UnknownVariableError, match="did you mean"):
            prompt.render_sync()


def test_without_variables_that_is_told() -> None:
    """Where no variable is known, the error says so."""
    prompt = SystemPrompt()
    prompt.section("s", "{{x}}", order=1)
    with pytest.raises(UnknownVariableError, match="no known variables"):
        prompt.render_sync()


def test_many_known_names_are_cut() -> None:
    """Of many known names some are listed, and how many more there are."""
    prompt = SystemPrompt()
    for at in range(50):
        prompt.variable(f"v{at:02}", "x")
    prompt.section("s", "{{nobody}}", order=1)
    with pytest.raises(UnknownVariableError, match=r"v00, v01, .* and 30 more") as caught:
        prompt.render_sync()
    assert len(caught.value.known) == 50


def test_no_value_is_another_fault_than_no_variable() -> None:
    """A registered variable without a value is told as such."""
    error = fault("Hi {{none}}.")
    assert isinstance(error, ValuelessVariableError)
    assert (error.kind, error.name, error.line, error.column) == ("valueless_variable", "none", 1, 4)
    assert "no value" in str(error)


def test_an_unused_variable_without_value_is_no_fault() -> None:
    """Only a reference needs a value."""
    assert rendered("{{x}}") == "X"


# The first fault


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{{nobody}} {{none}} {{ x }}", UnknownVariableError),
        ("{{none}} {{nobody}}", ValuelessVariableError),
        ("{{ x }} {{nobody}}", MalformedReferenceError),
        ("\ud800 {{nobody}}", LoneSurrogateError),
        ("{{nobody}} \ud800", UnknownVariableError),
        ("{{none}} {{{x}}}", ValuelessVariableError),
    ],
)
def test_the_first_fault_of_a_text_is_the_one_told(text: str, kind: type[RenderError]) -> None:
    """Faults are told from the left."""
    assert type(fault(text)) is kind


def test_the_first_faulty_section_is_the_one_told() -> None:
    """Faults are told in the order of the prompt, sections before contexts, also beside many sound ones."""
    prompt = SystemPrompt()
    for at in range(100):
        prompt.section(f"s{at}", f"{at}", order=at)
    prompt.context("c", "{{in_context}}", order=0)
    prompt.section("late", "{{late}}", order=200)
    prompt.section("early", lambda: "{{early}}", order=3)
    for name in ("early", "late"):
        with pytest.raises(UnknownVariableError, match=name) as caught:
            prompt.render_sync()
        assert caught.value.entry.name == name
        prompt.variable(name, "fine")
    with pytest.raises(UnknownVariableError, match='context "c"'):
        prompt.render_sync()


def test_what_is_not_told_is_not_rendered() -> None:
    """A faulty section that a complete one displaces is no fault of the prompt."""
    prompt = SystemPrompt()
    prompt.section("faulty", "{{nobody}}", order=1)
    prompt.section("all", "all", order=2, complete=True)
    assert prompt.render_sync().text == "all"


# Places


def test_an_error_points_at_its_place() -> None:
    """The error tells section, owner, line and column, and shows the line with a caret under the fault."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    agent.owner("greeter").section("hi", "Hello.\n\nHow are you, {{nmae}}?\nBye.", order=1)
    prompt.variable("name", "Ada")
    with pytest.raises(UnknownVariableError) as caught:
        agent.render_sync()
    error = caught.value
    assert (error.line, error.column) == (3, 14)
    lines = str(error).splitlines()
    assert 'section "hi" of greeter in scope agent' in lines[0]
    assert "line 3, column 14" in lines[0]
    assert lines[1].strip() == "How are you, {{nmae}}?"
    assert lines[2].index("^") == lines[1].index("{{nmae}}")
    assert lines[2].strip() == "^" * len("{{nmae}}")
    assert lines[3].startswith('did you mean "name"?')


@pytest.mark.parametrize("before", [0, 1, 39, 40, 41, 200, 5000])
@pytest.mark.parametrize("after", [0, 1, 100, 5000])
def test_an_excerpt_is_short_and_its_caret_true(before: int, after: int) -> None:
    """Of a long line at most 120 characters are shown, with the caret under the very place."""
    error = fault("a" * before + "{{nobody}}" + "b" * after)
    shown, carets = str(error).splitlines()[1:3]
    assert error.column == before + 1
    assert len(shown.strip()) <= 120
    assert len(carets) <= len(shown)
    start = carets.index("^")
    assert shown[start : start + 10] == "{{nobody}}"
    assert carets.strip() == "^" * 10


@pytest.mark.parametrize(
    "text", ["{{a\x1b[31mb}}", "\x07{{a\u202eb}}\u2028", "{{ x\n\ny }}", "{{\r\n}}", "{{" + "y\n" * 500 + "}}"]
)
def test_a_message_is_fit_to_print(text: str) -> None:
    """Control characters and line breaks of a text do not get into the message: four lines, all printable."""
    message = str(fault(text))
    lines = message.split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
    assert len(lines[0]) < 300


def test_values_are_never_shown() -> None:
    """An error in a text shows the text, never what variables hold."""
    prompt = SystemPrompt()
    prompt.variable("key", "hunter2")
    prompt.variable("broken", "hunter3 \ud800")
    prompt.section("s", "{{key}} {{nobody}}", order=1)
    agent = prompt.scope("agent")
    agent.section("s", "{{key}} {{broken}}", order=1)
    for view in (prompt, agent):
        with pytest.raises(RenderError) as caught:
            view.render_sync()
        assert "hunter" not in str(caught.value)
        assert "hunter" not in repr(caught.value.__reduce__())


# Ways out


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("{{ name }}", "write it without blanks: {{name}}"),
        ("{{name }}", "write it without blanks: {{name}}"),
        ("{{\tname\n}}", "write it without blanks: {{name}}"),
        ("{{{name}}}", "{{{{name}}}}, which renders {{name}}"),
        ("{{#if x}}", "verbatim=True"),
        ("{{ x | upper }}", "verbatim=True"),
        ("{{x.y}}", "attributes"),
    ],
)
def test_a_malformed_reference_is_told_its_way_out(text: str, way_out: str) -> None:
    """Blanks are told to go, literal braces to be escaped, foreign template syntax to be verbatim."""
    assert way_out in str(fault(text))


# Surrogates and strings


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDC00, 0xDFFF], ids=hex)
def test_half_a_pair_is_an_error_at_its_place(code: int) -> None:
    """A lone surrogate in a text is told with line and column, and the section it stands in; verbatim or not."""
    for options in ({}, {"verbatim": True}):
        with pytest.raises(LoneSurrogateError) as caught:
            prompt_of(f"fine\nab{chr(code)}c", **options).render_sync()
        error = caught.value
        assert (error.kind, error.line, error.column, error.variable) == ("lone_surrogate", 2, 3, None)
        assert error.code_point == f"U+{code:04X}"


def test_half_a_pair_in_a_value_names_the_variable() -> None:
    """In a value it is told at the reference, with the variable's name."""
    prompt = SystemPrompt()
    prompt.variable("v", lambda: "a\udc80")
    prompt.section("s", "see {{v}}", order=1)
    with pytest.raises(LoneSurrogateError, match=r"in the value of \"\{\{v\}\}\"") as caught:
        prompt.render_sync()
    assert (caught.value.variable, caught.value.column) == ("v", 5)


def test_two_halves_do_not_make_a_whole_across_entries() -> None:
    """Halves that meet by splicing are no character: each entry is sound by itself or not at all."""
    prompt = SystemPrompt()
    prompt.variable("low", "\ude00")
    prompt.section("s", "\ud83d{{low}}", order=1)
    with pytest.raises(LoneSurrogateError):
        prompt.render_sync()


def test_whole_characters_beyond_the_plane_are_fine() -> None:
    """A proper character outside the basic plane is no surrogate."""
    assert rendered("😀 {{x}}") == "😀 X"


def test_a_value_in_hand_made_assemblies_is_a_string() -> None:
    """Also an assembly made by hand is held to strings: anything else is named, and not turned into text."""
    assembly = PromptAssembly([AssembledSection("s", "{{v}}")], variables={"v": 5})  # type: ignore[dict-item]
    with pytest.raises(NotAStringError, match='variable "v", used in section "s"'):
        render(assembly)


def test_a_fault_of_a_listener_s_making_names_the_listener_s_owner() -> None:
    """A text that a listener put in is told as its owner's, where the listener was registered."""
    prompt = SystemPrompt()
    prompt.owner("plugin").on_assemble(listener(lambda a: a.sections.append(AssembledSection("x", "{{ y }}"))))
    with pytest.raises(MalformedReferenceError) as caught:
        prompt.render_sync()
    assert isinstance(caught.value.entry, EntryRef)
    assert caught.value.entry.owner == "plugin"
