"""FW4: characters and secrets."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.explain.lint.support import clerk, codes, found, only, tool

from foreword import SystemPrompt, ToolSchema
from foreword.explain.lint import LintConfig, lint

CHARACTERS = LintConfig(select=("FW401", "FW402", "FW403", "FW404"))


@pytest.mark.parametrize(
    ("character", "code"),
    [
        *((each, "FW401") for each in "\x00\x07\x08\x0b\x0c\r\x1b\x7f\x85\x9b\u2028\u2029\ufffd"),
        *((each, "FW402") for each in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
        *((each, "FW403") for each in "\u200b\u2060\ufeff\u00ad\u3164\U000e0041\U000e0101\u200c\u200d"),
        *((chr(each), "FW404") for each in (0xD83D, 0xDC00)),
    ],
)
def test_each_character_is_found_by_its_rule(character: str, code: str) -> None:
    """One such character between letters is found by one rule, which tells its number and where it stands."""
    (finding,) = lint(clerk(f"Be\nbr{character}ief."), CHARACTERS)
    assert finding.code == code
    assert f"U+{ord(character):04X}" in finding.message
    assert "line 2, column 3" in finding.message


@pytest.mark.parametrize(
    ("character", "words"),
    [("\r", "(a carriage return)"), ("\ufffd", "(a lost byte)"), ("\x00", "(control)")],
)
def test_control_characters_are_told_apart(character: str, words: str) -> None:
    """A carriage return and the mark of a lost byte are called what they are."""
    assert words in only(clerk(f"a{character}b"), "FW401").message


@pytest.mark.parametrize(
    "text",
    [
        "Tabs\tand\nlines — “quotes”, naïve, 日本語, é",
        "👩‍💻 👨‍👩‍👧 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",  # joiners in emoji, a variation selector, a flag of tags
        "می‌خواهم",  # a non-joiner between Persian letters
        "क्‍ष",  # a joiner in Devanagari
        "שלום\u200f world",  # a mark of direction
    ],
)
def test_characters_where_they_belong_are_quiet(text: str) -> None:
    """What scripts and emoji are made of."""
    assert lint(clerk(text), CHARACTERS) == []


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=60))
def test_plain_text_is_quiet(text: str) -> None:
    """Letters, digits, punctuation, symbols and blanks of any script are no finding, those that show nothing aside."""
    hidden = set("\u115f\u1160\u3164\uffa0\ufffd")
    if hidden.isdisjoint(text):
        assert lint(clerk(text, verbatim=True), CHARACTERS) == []


def test_every_text_is_looked_at() -> None:
    """Contexts, values of variables, what tools and their parameters say, in every scope, each with its owner."""
    prompt = SystemPrompt(persona="{{name}}")
    prompt.owner("crm").variable("name", "A\x00")
    prompt.owner("git").context("git:log", "B\x00", order=1)
    prompt.owner("shop").tools([tool("search", "C\x00")])
    parameters = {"type": "object", "properties": {"q": {"description": "D\x00"}}}
    prompt.owner("shop").tools([ToolSchema("find", "Find.", parameters)])
    prompt.scope("team").section("team:x", "E\x00", order=30)
    findings = found(prompt, "FW401")
    assert {(finding.owner, finding.name) for finding in findings} == {
        ("crm", "name"), ("git", "git:log"), ("shop", "search"), ("shop", "find"), ("team", "team:x"),
    }  # fmt: skip
    assert any("parameters.properties.q.description" in finding.message for finding in findings)


def test_a_text_of_many_is_told_once() -> None:
    """Several of them in one text are one finding, with their kinds and how many more there are."""
    finding = only(clerk("a\x00b\x01c\x00"), "FW401")
    assert "U+0000, U+0001" in finding.message
    assert "and 2 more" in finding.message


# -- FW405 -------------------------------------------------------------------------------------------------------------


def some(characters: str, length: int) -> str:
    """A random stretch of a key; made here, so that none stands in this file."""
    return "".join(random.Random(length).choices(characters, k=length))


WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
KEYS = {
    "a private key": f"-----BEGIN RSA PRIVATE KEY-----\n{some(WORD, 64)}\n",
    "an AWS access key": "AKIA" + some("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
    "an Anthropic API key": f"sk-ant-api03-{some(WORD, 95)}",
    "an OpenAI API key": f"sk-proj-{some(WORD, 40)}T3BlbkFJ{some(WORD, 40)}",
    "a Google API key": "AIza" + some(WORD, 35),
    "a Hugging Face token": "hf_" + some(string.ascii_letters, 34),
    "a GitHub token": "ghp_" + some(WORD, 36),
    "a GitLab token": "glpat-" + some(WORD, 20),
    "a Slack token": f"xoxb-{some(string.digits, 11)}-{some(string.digits, 11)}-{some(WORD, 24)}",
    "a Slack web hook": f"https://hooks.slack.com/services/T{some('ABC123', 8)}/B{some('ABC123', 8)}/{some(WORD, 24)}",
    "a Stripe key": "sk_live_" + some(WORD, 24),
    "a SendGrid API key": f"SG.{some(WORD, 22)}.{some(WORD, 43)}",
    "an npm token": "npm_" + some(WORD, 36),
    "a PyPI token": "pypi-AgEIcHlwaS5vcmc" + some(WORD, 80),
    "a DigitalOcean token": "dop_v1_" + some(HEX, 64),
    "a Databricks token": "dapi" + some(HEX, 32),
    "a Shopify token": "shpat_" + some(HEX, 32),
    "a Telegram bot token": f"{some(string.digits, 9)}:AA{some(WORD, 33)}",
}


@pytest.mark.parametrize("what", KEYS)
def test_keys_are_found_and_not_shown(what: str) -> None:
    """Each format is told by name, inside prose; of the key only its first four characters are shown."""
    key = KEYS[what]
    finding = only(clerk(f"Call the API with {key} and be brief."), "FW405")
    assert f"holds {what} ({key[:4]}…)" in finding.message
    assert key[8:] not in str(finding)


@pytest.mark.parametrize(
    "text",
    [
        "Set GITHUB_TOKEN; tokens begin with ghp_, keys with sk-ant-api03- or AKIA.",
        "An example: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "AWS calls it AKIAIOSFODNN7EXAMPLE in its documents.",
        "password: hunter2, secret: correct horse battery staple",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, digest sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2pJ\n-----END CERTIFICATE-----",
        "The block begins with -----BEGIN PRIVATE KEY----- and you never show one.",
    ],
)
def test_what_only_looks_like_a_key_is_quiet(text: str) -> None:
    """Names, beginnings, examples, digests, certificates, words beside "password"."""
    assert found(clerk(text), "FW405") == []


def test_rules_for_texts_read_renderings() -> None:
    """Of a rendering, which a log can give, the rules that read texts run; the report tells those that do not."""
    from foreword.explain.lint import RULES, Reads, examine

    prompt = clerk("Be br\u200bief, {{name}}.")
    prompt.owner("crm").variable("name", "A\u202eda")
    prompt.context("clock", "\x1b[1m", order=1)
    prompt.owner("shop").tools([tool("orders.find")])
    report = examine(prompt.render_sync())
    assert codes(report.findings) == ["FW304", "FW402", "FW401", "FW403"]
    assert [finding.owner for finding in report.findings] == ["shop", "desk", "main", "desk"]
    assert {each.code for each in report.left_out} == {rule.code for rule in RULES if rule.reads is not Reads.TEXTS}
