"""Prompts such as people write: on 20 of them no rule gives more than one false alarm per ten.

Each file in `prompts` is one: the persona, then sections behind lines ``=== owner:name``. A section ``tool:NAME`` brings
its tool along. There is nothing wrong with any of them, so whatever is found is a false alarm.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.explain.lint.support import tool

from foreword import SystemPrompt
from foreword.explain.lint import LintConfig, lint

PROMPTS = sorted((Path(__file__).parent / "prompts").glob("*.md"))
VALUES = {"company": "Acme", "user_name": "Ada", "repository": "acme/shop"}


def prompt_of(path: Path) -> SystemPrompt:
    """The prompt that a file tells."""
    persona, *parts = re.split(r"^=== (\S+)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    prompt = SystemPrompt(persona=persona.strip())
    for at, (name, text) in enumerate(zip(parts[::2], parts[1::2], strict=True), 1):
        owner, _, rest = name.partition(":")
        view = prompt.owner(rest if owner == "tool" else owner)
        if owner == "tool":
            view.tools([tool(rest)])
        view.section(name, text.strip(), order=at * 10, requires_tools=[rest] if owner == "tool" else [])
    for name, value in VALUES.items():
        prompt.variable(name, value)
    prompt.owner("clock").context("clock:now", lambda: "Ten past nine.", order=10)
    return prompt


def test_there_are_enough_of_them() -> None:
    """Twenty prompts, of several sections and a hundred words and more each."""
    assert len(PROMPTS) == 20
    for path in PROMPTS:
        assert len(prompt_of(path).assemble_sync().sections) >= 4, path
        assert len(path.read_text("utf-8").split()) >= 60, path


def test_no_rule_cries_wolf() -> None:
    """At most one false alarm per ten prompts from each rule. That a variable is unused is told by the test's own."""
    alarms: Counter[str] = Counter()
    told: list[str] = []
    for path in PROMPTS:
        findings = lint(prompt_of(path), LintConfig(ignore={"FW204": "all prompts are given the same variables"}))
        alarms.update({finding.code for finding in findings})
        told += [f"{path.stem}: {finding}" for finding in findings]
    most = len(PROMPTS) // 10
    assert all(count <= most for count in alarms.values()), "\n".join(told)


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_what_is_sent_is_quiet_too(path: Path) -> None:
    """The rendering of each, as a log has it."""
    assert len(lint(prompt_of(path).render_sync())) <= 1
