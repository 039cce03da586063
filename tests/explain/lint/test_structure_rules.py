"""FW2: references and structure."""

from __future__ import annotations

from typing import Any

import click
import pytest
from tests.explain.lint.support import clerk, codes, found, only, tool

from foreword import AssembleContext, ContextKey, Placeholder, SystemPrompt, SystemPromptConfig
from foreword.explain.lint import LintConfig, alint, lint
from foreword.kernel.source import Source

TENANT = ContextKey("tenant", str)


def raising(*_: Any) -> str:
    raise ConnectionError("no shop today")


# -- FW200 -------------------------------------------------------------------------------------------------------------


def test_failing_providers_are_found() -> None:
    """Every provider that fails is told once, whatever the number of scopes, and the other rules go on."""
    prompt = clerk("You know {{nobody}}.")
    prompt.owner("shop").section("shop:offers", raising, order=30)
    prompt.owner("shop").variable("stock", raising)
    prompt.scope("team").section("team:tone", "Be brief.", order=40)
    findings = found(prompt, "FW200")
    assert [finding.name for finding in findings] == ["shop:offers", "stock"]
    assert findings[0].message == (
        'section "shop:offers" fails (ConnectionError: no shop today); so the prompt of the global layer cannot be assembled'
    )
    assert codes(lint(prompt, LintConfig(select=("FW201",)))) == ["FW201"]


def test_two_complete_sections_are_found() -> None:
    """Two complete sections in one scope, with both names."""
    prompt = clerk()
    prompt.section("one", "x", order=1, complete=True)
    prompt.section("two", "x", order=2, complete=True)
    finding = only(prompt, "FW200")
    assert finding.name == "two"
    assert 'is complete, and so is section "one" of main' in finding.message


@pytest.mark.anyio
async def test_a_failing_listener_is_found() -> None:
    """A listener that raises."""
    prompt = clerk()

    @prompt.owner("meddler").on_assemble
    async def meddle(assembly, context, call_next):
        raise LookupError("nothing there")

    (finding,) = await alint(prompt, LintConfig(select=("FW200",)))
    assert finding.owner == "meddler"
    assert "LookupError: nothing there" in finding.message


def test_a_failure_under_another_clock_is_told_as_such() -> None:
    """What fails only when the clock is moved says so."""
    from datetime import datetime

    year = datetime.now().year

    def expired() -> str:
        if datetime.now().year > year:
            raise PermissionError("the licence has expired")
        return "x"

    assert "cannot be assembled when the clock is moved" in next(
        finding.message for finding in lint(clerk(expired)) if finding.code == "FW200"
    )


def test_a_failure_at_the_second_step_is_told_as_it_is() -> None:
    """What fails only at the second assembly has nothing to do with the clock."""
    calls: list[int] = []

    def flaky() -> str:
        calls.append(1)
        if len(calls) == 2:
            raise TimeoutError("busy")
        return "x"

    (finding,) = [finding for finding in lint(clerk(flaky)) if finding.code == "FW200"]
    assert finding.message.endswith("so the prompt of the global layer cannot be assembled")


def test_what_is_excused_is_quiet() -> None:
    """A failure with a placeholder; a provider whose value the context has."""
    assert found(clerk(raising, on_error=Placeholder("x")), "FW200") == []
    prompt = clerk(lambda context: context[TENANT])
    assert codes(found(prompt, "FW200")) == ["FW200"]
    assert lint(prompt, LintConfig(select=("FW200",)), context=AssembleContext({TENANT: "acme"})) == []


# -- FW201, FW202, FW203 -----------------------------------------------------------------------------------------------


def test_unknown_variables_are_found_everywhere() -> None:
    """In a provider's text, in a context, in a text that is left out for now; with line, column and the nearest name."""
    prompt = clerk("Hello.\nYou serve {{compny}}.", when=lambda _: False)
    prompt.owner("a").section("a:x", lambda: "{{one}}", order=1)
    prompt.owner("a").context("a:y", "{{two}} {{two}}", order=1)
    prompt.variable("company", "Acme")
    findings = {finding.name: finding for finding in found(prompt, "FW201")}
    assert findings.keys() == {"desk:text", "a:x", "a:y"}
    assert '"{{compny}}" (line 2, column 11), which nobody registers' in findings["desk:text"].message
    assert 'did you mean "company"?' in findings["desk:text"].way_out


def test_a_variable_of_one_scope_is_unknown_in_others() -> None:
    """A global text refers to a variable that only one scope has: the other scopes are named."""
    prompt = clerk("You serve {{customer}}.")
    prompt.scope("a").variable("customer", "Ada")
    prompt.scope("b").section("b:x", "x", order=30)
    finding = only(prompt, "FW201")
    assert finding.message.endswith('which nobody registers in the global layer, scope "b"')
    assert "register it in the global layer" in finding.way_out


def test_the_line_of_a_text_file_is_told(tmp_path) -> None:
    """The place is the line in the file that the text stands in."""
    (tmp_path / "rules.md").write_text("One.\n\nTwo {{three}}.\n")
    finding = only(clerk(tmp_path / "rules.md"), "FW201")
    assert finding.place is not None
    assert finding.place.endswith("rules.md:3")


def test_known_variables_are_quiet() -> None:
    """Registered ones, escapes, verbatim texts; and texts that a complete section displaces."""
    prompt = clerk("{{company}} {{{{city}}}} {")
    prompt.variable("company", "Acme")
    prompt.section("raw", "{{ x }} {{y}}", order=30, verbatim=True)
    prompt.section("other", "{{nobody}}", order=40)
    prompt.section("all", "x", order=50, complete=True)
    assert lint(prompt, LintConfig(select=("FW201", "FW202", "FW203"))) == []


@pytest.mark.anyio
async def test_variables_of_listeners_are_known() -> None:
    """A variable that a listener sets is there when the text is rendered."""
    prompt = clerk("You serve {{customer}}.")

    @prompt.on_assemble
    async def set_it(assembly, context, call_next):
        assembly.variables["customer"] = "Ada"
        return await call_next()

    assert await alint(prompt, LintConfig(select=("FW201", "FW203"))) == []


@pytest.mark.parametrize("text", ["{{ company }}", "{{company.name}}", "{{#if x}}", "{{{company}}}", "{{}}"])
def test_malformed_references_are_found(text: str) -> None:
    """Double braces that are no reference, with what to write instead; also where the text is left out for now."""
    for options in ({}, {"when": lambda _: False}):
        prompt = clerk(f"Hello.\n {text}", **options)
        prompt.variable("company", "Acme")
        finding = only(prompt, "FW202")
        assert "(line 2, column 2), which is no reference" in finding.message
        assert finding.way_out


def test_valueless_variables_are_found() -> None:
    """None as a value, and from a provider that reads nothing."""
    prompt = clerk("You serve {{one}} and {{two}}.")
    prompt.owner("crm").variable("one", None)
    prompt.owner("crm").variable("two", lambda: None)
    findings = found(prompt, "FW203")
    assert [finding.message.partition(" (")[0] for finding in findings] == [
        'section "desk:text" refers to variable "one" of crm',
        'section "desk:text" refers to variable "two" of crm',
    ]


def test_values_that_may_come_are_quiet() -> None:
    """A provider that reads the context, a condition, an empty string; a section that is left out for now."""
    prompt = clerk("{{agent_name}} {{sometimes}} {{empty}}")
    prompt.variable("agent_name", lambda context: None)
    prompt.variable("sometimes", "x", when=lambda _: False)
    prompt.variable("empty", "")
    prompt.variable("none", None)
    prompt.section("later", "{{none}}", order=30, when=lambda _: False)
    assert found(prompt, "FW203") == []


# -- FW204, FW205 ------------------------------------------------------------------------------------------------------


def test_a_variable_that_a_malformed_text_mentions_is_not_unused() -> None:
    """Behind the first malformed reference nothing is read: what stands there is perhaps a reference once it is mended,
    and "take it out" would be bad advice."""
    prompt = SystemPrompt(persona="Hi {{ a }} {{b}}.")
    for name in ("a", "b", "other"):
        prompt.variable(name, "1")
    assert [finding.name for finding in found(prompt, "FW202")] == ["deployment:persona"]
    assert [finding.name for finding in found(prompt, "FW204")] == ["other"]


def test_unused_variables_are_found() -> None:
    """A variable that no section, context or override refers to, in the global layer and in a scope."""
    prompt = clerk("{{one}}")
    for name in ("one", "two", "three", "four"):
        prompt.variable(name, "x")
    prompt.context("c", "{{two}}", order=1)
    prompt.override("c", text="{{three}}")
    prompt.scope("team").variable("five", "x")
    assert [finding.name for finding in found(prompt, "FW204")] == ["four", "five"]


def test_used_variables_are_quiet() -> None:
    """In a text that is shadowed, left out, or made by a provider; and nothing is said where a text was not to be had."""
    prompt = clerk("{{one}}", when=lambda _: False)
    prompt.section("shadowed", "{{two}}", order=30)
    prompt.scope("team").section("shadowed", "x", order=30)
    prompt.section("made", lambda: "{{three}}", order=40)
    for name in ("one", "two", "three"):
        prompt.variable(name, "x")
    assert found(prompt, "FW204") == []
    prompt.variable("four", "x")
    assert only(prompt, "FW204").name == "four"
    prompt.section("unread", lambda: "x", order=50, when=lambda _: False)
    assert found(prompt, "FW204") == []


def test_what_packages_offer_is_quiet() -> None:
    """A variable of an installed distribution is there for others to use."""
    prompt = clerk()
    prompt.variable("offered", "x", source=Source(click.__file__, 1))
    assert found(prompt, "FW204") == []


@pytest.mark.parametrize(
    "text",
    [
        "{% if x %}Be brief.{% endif %}",
        "{%- for x in y -%}",
        "{# a comment #}",
        "<%= company %>",
        "You serve {company}.",
        "You serve ${company}.",
        "You serve %(company)s.",
        "You serve <<company>>.",
    ],
)
def test_foreign_braces_are_found(text: str) -> None:
    """Tags of other template languages, and a variable in another spelling."""
    prompt = clerk(text)
    prompt.variable("company", "Acme")
    prompt.scope("team").section("team:x", "x", order=30)
    assert 'section "desk:text" holds ' in only(prompt, "FW205").message


@pytest.mark.parametrize(
    "text",
    [
        'Answer with {"company": "Acme", "items": [{"id": 1}]}.',
        "Write `{company}` and `{% if x %}` in the template.",
        "```jinja\n{% if company %}{{{{company}}}}{% endif %}\n```",
        "Set ${HOME} and {page}; f-strings look like {value!r}.",
        "({ company }) => { return company }",
        "100 % of {1, 2} <% of",
        "a dictionary {company: 1}",
    ],
)
def test_braces_that_are_prose_are_quiet(text: str) -> None:
    """JSON, code, quotations, names that are no variables."""
    prompt = clerk(text)
    prompt.variable("company", "Acme")
    assert found(prompt, "FW205") == []
    assert found(clerk("{% if x %} {company}", verbatim=True), "FW205") == []


# -- FW206, FW207, FW208 -----------------------------------------------------------------------------------------------


def test_shadows_that_never_win_are_found() -> None:
    """A section and a variable of a scope that every scope at the end of the chain hides."""
    prompt = clerk("x")
    team = prompt.scope("team")
    team.section("tone", "Be brief.", order=30)
    team.variable("limit", "5")
    for name in ("a", "b"):
        agent = prompt.scope(name, parent=team)
        agent.section("tone", "Be kind.", order=30)
        agent.variable("limit", "6")
    findings = found(prompt, "FW206")
    assert [(finding.name, finding.scope) for finding in findings] == [("tone", "team"), ("limit", "team")]
    assert 'section "tone" of a in scope a' in findings[0].message


def test_shadows_that_win_somewhere_are_quiet() -> None:
    """One scope below that does not hide it, no scope below at all, and the global layer, whatever hides it."""
    prompt = clerk("x")
    team = prompt.scope("team")
    team.section("desk:text", "Be brief.", order=30)
    assert found(prompt, "FW206") == []
    prompt.scope("a", parent=team).section("desk:text", "Be kind.", order=30)
    prompt.scope("b", parent=team).section("other", "Be kind.", order=30)
    assert found(prompt, "FW206") == []


def test_protected_sections_that_are_displaced_are_found() -> None:
    """A complete section in a scope, beside a protection in the global layer; told with the scope."""
    prompt = clerk("Never lie.")
    prompt.protect(sections=["desk:text", "nobody"])
    prompt.scope("team").owner("sum").section("sum:all", "Summarise.", order=1, complete=True)
    finding = only(prompt, "FW207")
    assert (finding.owner, finding.scope) == ("sum", "team")
    assert 'displaces the protected section "desk:text" of desk' in finding.message
    assert finding.message.endswith('in scope "team"')


def test_protected_sections_that_stay_are_quiet() -> None:
    """A complete section that is itself the protected one, or whose condition does not hold."""
    prompt = clerk("Never lie.", complete=True)
    prompt.protect(sections=["desk:text"])
    assert found(prompt, "FW207") == []
    prompt = clerk("Never lie.")
    prompt.protect(sections=["desk:text"])
    prompt.section("all", "x", order=1, complete=True, when=lambda _: False)
    assert found(prompt, "FW207") == []


def test_overrides_without_a_target_are_found() -> None:
    """A name that nobody bears in any scope, with the nearest one."""
    prompt = clerk("x")
    prompt.override("desk:txt", enabled=False)
    finding = only(prompt, "FW208")
    assert finding.name == "desk:txt"
    assert 'did you mean "desk:text"?' in finding.way_out


def test_overrides_with_a_target_are_quiet() -> None:
    """A section, a context, one of a scope alone; also when the override takes it out."""
    prompt = clerk("x")
    prompt.context("c", "x", order=1)
    prompt.scope("team").section("t", "x", order=30)
    for name in ("desk:text", "c", "t"):
        prompt.override(name, enabled=False)
    assert found(prompt, "FW208") == []


# -- FW209, FW210, FW211 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "has no text"),
        (" \n\t", "holds nothing but blanks"),
        ("{{nothing}}", "is empty, like its variables"),
        (" {{nothing}}\n{{nothing}}", "is empty, like its variables"),
    ],
)
def test_empty_sections_are_found(text: str, what: str) -> None:
    """No text, blanks, variables that are empty; in sections and in contexts, also in those left out for now."""
    for options in ({}, {"when": lambda _: False}):
        prompt = clerk(text, **options)
        prompt.context("c", text, order=1)
        prompt.variable("nothing", "")
        findings = found(prompt, "FW209")
        assert [finding.message for finding in findings] == [f'section "desk:text" {what}', f'context "c" {what}']
    assert only(SystemPrompt(persona=" "), "FW209").name == "deployment:persona"


def test_sections_that_may_say_something_are_quiet() -> None:
    """A provider's text, one that has something to say in another scope, the place that a persona keeps."""
    prompt = SystemPrompt()
    prompt.section("made", lambda: "", order=1)
    prompt.section("told", "{{name}}", order=2)
    prompt.variable("name", "Ada")
    prompt.scope("team").variable("name", "")
    assert found(prompt, "FW209") == []


@pytest.mark.anyio
async def test_the_identity_that_is_left_open() -> None:
    """Mounted and told nothing, the prompt opens with the harness's sentence; told anything, it is meant."""
    from foreword import Context

    async def look(config: SystemPromptConfig | None) -> list[str]:
        async with Context() as ctx:
            await ctx.mount(SystemPrompt, *([] if config is None else [config])).ready()
            return codes(await alint(ctx.require(SystemPrompt), LintConfig(select=("FW210",))))

    assert await look(None) == ["FW210"]
    assert await look(SystemPromptConfig(include_harness_identity=True)) == []
    assert await look(SystemPromptConfig(include_harness_identity=False)) == []
    assert await look(SystemPromptConfig(identity="You are Ada.")) == []


def test_empty_prompts_are_found() -> None:
    """A prompt without any text, and a scope where a condition leaves nothing."""
    assert only(SystemPrompt(), "FW211").message == "the system prompt is empty"
    prompt = SystemPrompt()
    prompt.section("x", "x", order=1)
    prompt.scope("team").section("x", "", order=1)
    assert only(prompt, "FW211").message == 'the system prompt is empty in scope "team"'


def test_prompts_with_a_text_are_quiet() -> None:
    """Any text will do, also one that cannot be rendered: that is another rule's."""
    assert found(clerk(), "FW211") == []
    assert found(SystemPrompt(persona="{{nobody}}"), "FW211") == []


def test_a_prompt_that_cannot_be_assembled_may_have_a_text() -> None:
    """What it would hold is not known."""
    prompt = SystemPrompt()
    prompt.section("made", raising, order=1)
    assert found(prompt, "FW211") == []


def test_a_tool_alone_is_no_prompt() -> None:
    """Tools do not make up for a text."""
    prompt = SystemPrompt()
    prompt.tools([tool("search")])
    assert codes(found(prompt, "FW211")) == ["FW211"]
