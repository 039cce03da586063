"""FW205: braces of another template language: they reach the model as they are.

Prose and code may hold any braces, so only two kinds count: the tags of template languages, and a registered variable
in another spelling. What stands in backticks or fences is quoted, and passes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import outside_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

_TAG = re.compile(
    r"\{%-?\s*(?:if|elif|else|endif|for|endfor|set|include|extends|block|endblock|macro|raw)\b[^{}\n]*%\}"
    r"|\{#[^{}\n]*#\}"
    r"|<%[=-]?\s[^<>\n]*%>"
)
_SPELLINGS = re.compile(
    r"(?<![{$\w])\$?\{([a-z][a-z0-9_]*)\}(?!\})"  # {name} of str.format, ${name} of shells and JavaScript
    r"|%\(([a-z][a-z0-9_]*)\)s"  # %(name)s
    r"|<<([a-z][a-z0-9_]*)>>"
)


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every template of every scope."""
    told: set[tuple[str, str, str]] = set()
    for branch in survey.branches:
        for text in branch.texts:
            if text.verbatim or (text.kind, text.name, text.text) in told:
                continue
            told.add((text.kind, text.name, text.text))
            prose = outside_code(text.text)
            tag = _TAG.search(prose)
            if tag is not None:
                tag_text, where = survey.hide(tag[0])[:40], text.position(tag.start())
                message = f"{text.label} holds {tag_text} ({where}), which no template fills in"
                way_out = "write it with {{name}} and when=…; if the model is to read it, use verbatim=True"
                yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(tag.start()))
            for found in _SPELLINGS.finditer(prose):
                name = found[1] or found[2] or found[3]
                if name in branch.values:
                    where = text.position(found.start())
                    message = f'{text.label} holds {found[0]} ({where}), and "{name}" is a variable'
                    way_out = f"write {{{{{name}}}}}; if the model is to read it as it is, put it in backticks"
                    yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(found.start()))
                    break


RULE = Rule(
    "FW205",
    "foreign-braces",
    Severity.WARNING,
    Reads.PROMPT,
    "tags of another template language, or a variable in another spelling",
    find,
)
