"""FW5: what is paid for twice."""

from __future__ import annotations

from tests.explain.lint.support import clerk, found, only

from foreword.explain.lint import LintConfig, lint

RULES = (
    "Never promise a refund before you have looked the order up. Tell the customer when the money will arrive, and in "
    "what currency. Where an order is older than a year, hand it over to a colleague."
)


def test_sections_that_say_the_same_are_found() -> None:
    """Word for word, with other blanks and other letters' case, and with a sentence more; told with both owners."""
    prompt = clerk(RULES)
    prompt.owner("copy").section("copy:a", RULES.upper().replace(" ", "  "), order=30)
    prompt.owner("copy").section("copy:b", f"{RULES} Be brief.", order=40)
    same, alike = found(prompt, "FW501")
    assert same.message.startswith('section "copy:a" says the same as section "desk:text" of desk')
    assert alike.message.startswith('section "copy:b" is ')
    assert "% like section" in alike.message


def test_what_is_rendered_counts() -> None:
    """Two templates that differ in a word are alike once their variables are filled in."""
    prompt = clerk(RULES.replace("a colleague", "{{who}}"))
    prompt.variable("who", "a colleague")
    prompt.section("copy", RULES, order=30)
    assert only(prompt, "FW501").name == "copy"


def test_sections_that_differ_are_quiet() -> None:
    """Other rules in like words, short sections, and a shadow, which is never beside what it hides."""
    prompt = clerk(RULES)
    prompt.section(
        "other", RULES.replace("refund", "delivery").replace("money", "parcel").replace("year", "day")[20:], order=30
    )
    prompt.section("short:a", "Be brief and kind.", order=40)
    prompt.section("short:b", "Be brief and kind.", order=50)
    prompt.scope("team").section("desk:text", f"{RULES} Be brief.", order=20)
    assert found(prompt, "FW501") == []


def test_large_sections_are_found() -> None:
    """More than the budget of estimated tokens, as rendered; the budget is the configuration's."""
    prompt = clerk("Read this: {{page}}")
    prompt.variable("page", "An item and its price.\n" * 900)
    finding = only(prompt, "FW502")
    assert finding.name == "desk:text"
    assert "more than the 4,000 of a section" in finding.message
    assert lint(prompt, LintConfig(select=("FW502",), section_tokens=20_000)) == []
    assert [each.name for each in lint(clerk(RULES), LintConfig(select=("FW502",), section_tokens=20))] == ["desk:text"]
