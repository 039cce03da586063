"""FW102: text that is made anew by each process: a UUID, a process id, an object's address, a temporary file, a date.

It stays the same while the process lives, so no second assembly shows it; but its form gives it away. A UUID or date
that stands in the module that registered it was written there, and is no finding.
"""

from __future__ import annotations

import os
import re
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.survey import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Branch, Survey
    from foreword.prompt.origin import Origin

_ADDRESS = re.compile(r"<[^<>\n]{1,120} at 0x[0-9a-fA-F]{6,16}>")
_TEMPORARY = re.compile(
    r"(?:/tmp|/var/tmp|/var/folders/[^\s/]+/[^\s/]+/T|[\\/]Temp)[\\/](?:tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{6,12})\b"
)
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[147][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b", re.IGNORECASE)
_NEAR_A_PID = r"\b(?:pid|process(?: id)?)\b[^\w\n]{{1,4}}(?:is )?{pid}\b"


def find(survey: Survey) -> Iterator[Finding]:
    """Look at the sections in force and at the values that they use; one that differs by scopes is told once."""
    told: set[tuple[str, str, Origin, str]] = set()
    for branch in survey.branches:
        for text, is_sensitive in _texts(branch):
            for what, finding in _in(text, survey, is_sensitive=is_sensitive):
                entry = text.kind, text.name, text.origin, what
                if entry not in told:
                    told.add(entry)
                    yield finding


def _texts(branch: Branch) -> Iterator[tuple[Text, bool]]:
    """The texts, and whether each of them must not be quoted."""
    yield from ((section, False) for section in branch.sections)
    used = {name for section in branch.sections for name in section.template.names}
    for name in sorted(used):
        entry, value = branch.variable(name), branch.values.get(name)
        if entry is not None and value:
            text = Text("variable", name, value, entry.origin, is_made=entry.provider.call is not None)
            yield text, entry.sensitive


def _in(text: Text, survey: Survey, *, is_sensitive: bool) -> Iterator[tuple[str, Finding]]:
    """What is found in a text, with the form of each."""
    for what, pattern in _forms().items():
        found = pattern.search(text.text)
        if found is not None and not (what in _WRITTEN and (text.is_made or _is_written(text, found[0]))):
            quoted = "" if is_sensitive else f" ({survey.hide(found[0])[:60]})"
            message = f"{text.label} holds {what}{quoted}, which is another one in each process"
            yield what, RULE.finding(text.origin, text.name, message, _WAY_OUT, place=text.place(found.start()))


_WRITTEN = ("a UUID", "today's date")
_WAY_OUT = "leave it out, or tell it in a runtime context: every session pays for the whole prompt anew"


def _forms() -> dict[str, re.Pattern[str]]:
    """What gives such text away, now and in this process."""
    today = date.today()
    month, day = today.strftime("%B"), str(today.day)
    dates = [
        today.isoformat(),
        *(f"{name} {day}, {today.year}" for name in (month, month[:3])),
        *(f"{day} {name} {today.year}" for name in (month, month[:3])),
        today.strftime("%d.%m.%Y"),
        today.strftime("%m/%d/%Y"),
        today.strftime("%d/%m/%Y"),
    ]
    return {
        "the address of an object": _ADDRESS,
        "the path of a temporary file": _TEMPORARY,
        "the id of the process": re.compile(_NEAR_A_PID.format(pid=os.getpid()), re.IGNORECASE),
        "a UUID": _UUID,
        "today's date": re.compile(r"(?<!\d)(?:" + "|".join(map(re.escape, dates)) + r")(?!\d)"),
    }


def _is_written(text: Text, found: str) -> bool:
    """Whether it stands in the file that the text was registered in: then somebody wrote it, and it stays."""
    source = text.origin.source
    if source is None or not source.path.endswith(".py"):
        return True  # a text file, a deployment: not made by a process
    content = _content(source.path)
    return content is None or found in content


@lru_cache(maxsize=256)
def _content(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:  # not there any more, or never: nothing can be told
        return None


RULE = Rule(
    "FW102",
    "made-at-start",
    Severity.WARNING,
    Reads.PROMPT,
    "text that each process makes anew: UUIDs, process ids, addresses, temporary files, dates",
    find,
)
