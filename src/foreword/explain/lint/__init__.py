"""Lint: what will go wrong with a prompt, said before it does.

    for finding in lint(prompt):
        print(finding)

A rule has a code, a severity, and a page in ``docs/reference/lint``. `lint` looks at a `SystemPrompt` as each of its
scopes sees it, or at a rendering; `alint` does so within an event loop. `examine` also tells what was ignored and what
could not be looked at. A rule of your own is a `Rule`; hand it over with ``rules=[*RULES, MINE]``.
"""

from foreword.explain.lint.config import LintConfig
from foreword.explain.lint.engine import Ignored, LeftOut, Report, aexamine, alint, examine, lint
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.rules import RULES
from foreword.explain.lint.survey import Branch, Survey, Text

__all__ = [
    "RULES",
    "Branch",
    "Finding",
    "Ignored",
    "LeftOut",
    "LintConfig",
    "Reads",
    "Report",
    "Rule",
    "Severity",
    "Survey",
    "Text",
    "aexamine",
    "alint",
    "examine",
    "lint",
]
