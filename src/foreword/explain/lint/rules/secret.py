"""FW405: a key or token in a text, told by its format. What is found is not shown.

Only formats with a fixed beginning and length count. What merely looks random, or stands beside the word "password", is
mostly prose in a prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import matches, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

FORMATS: Final = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----\s+[A-Za-z0-9+/=]{16,}",
    "an AWS access key": r"(?:AKIA|ASIA)[A-Z2-7]{16}",
    "an Anthropic API key": r"sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,120}",
    "an OpenAI API key": r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,90}T3BlbkFJ[A-Za-z0-9_-]{20,90}",
    "a Google API key": r"AIza[A-Za-z0-9_-]{35}",
    "a Hugging Face token": r"hf_[A-Za-z]{34}",
    "a GitHub token": r"gh[opsur]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    "a GitLab token": r"glpat-[A-Za-z0-9_-]{20}",
    "a Slack token": r"xox[abprs]-[0-9]{8,14}-[A-Za-z0-9-]{16,80}",
    "a Slack web hook": r"https://hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{24}",
    "a Stripe key": r"[rs]k_live_[A-Za-z0-9]{24,99}",
    "a SendGrid API key": r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    "an npm token": r"npm_[A-Za-z0-9]{36}",
    "a PyPI token": r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,200}",
    "a DigitalOcean token": r"do[opr]_v1_[a-f0-9]{64}",
    "a Databricks token": r"dapi[a-f0-9]{32}",
    "a Shopify token": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    "a Telegram bot token": r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
}
_PATTERN: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    + "|".join(f"(?P<f{at}>{pattern})" for at, pattern in enumerate(FORMATS.values()))
    + r")(?![A-Za-z0-9_-])"
)
_NAMES: Final = list(FORMATS)
_SHOWN: Final = 4  # characters of a secret that a message may tell: its beginning is the same for all of its kind


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every text."""
    for text, every in matches(survey, _PATTERN):
        found = [each for each in every if not _is_made_up(each[0])]
        if found:
            name = _NAMES[int(str(found[0].lastgroup)[1:])]
            message = f"{text.label} holds {name} ({found[0][0][:_SHOWN]}…) {where(text, found)}"
            way_out = "take it out, and revoke it if it was ever sent; tools read secrets where they run"
            yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(found[0].start()))


def _is_made_up(found: str) -> bool:
    """Whether it stands for a key: of hardly any different characters, or called an example."""
    return len(set(found[-16:])) < 5 or "EXAMPLE" in found.upper()


RULE = Rule(
    "FW405",
    "secret",
    Severity.ERROR,
    Reads.TEXTS,
    "keys and tokens of well-known formats",
    find,
)
