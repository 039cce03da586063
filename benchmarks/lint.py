"""How long the lint takes, rule by rule: a prompt of 1,000 sections by 50 owners, with variables, tools and 10 scopes.

    python benchmarks/lint.py

The goal is 1,000 sections in under two seconds, assemblies included. `lint` is what a user waits for; the rules'
times are taken on a survey that is there already.
"""

from __future__ import annotations

import random
from time import perf_counter

from foreword import AssembleContext, SystemPrompt, ToolSchema
from foreword.explain.lint import RULES, LintConfig, lint
from foreword.explain.lint.gathering import Wanted, gather

SECTIONS = 1000
OWNERS = 50
SCOPES = 10
WORDS = [f"word{at}" for at in range(40)]


def build(*, scopes: int, alike: bool) -> SystemPrompt:
    """A prompt of many sections: each with words of its own, or all but alike."""
    rng = random.Random(7)
    prompt = SystemPrompt(persona="You are a clerk of {{company}}.")
    prompt.variable("company", "Acme")
    owners = [prompt.owner(f"owner{at}") for at in range(OWNERS)]
    common = " ".join(rng.choices(WORDS, k=100))
    for at in range(SECTIONS):
        words = common if alike else " ".join(rng.choices(WORDS, k=100))
        owners[at % OWNERS].section(f"owner{at % OWNERS}:{at}", f"{words} {at} of {{{{company}}}}.", order=at + 1)
    for at in range(100):
        owners[at % OWNERS].tools([ToolSchema(f"tool_{at}", "Does something.", {"type": "object"})])
    for at in range(scopes):
        prompt.scope(f"agent{at}").section("deployment:persona", f"You are agent {at}.", order=0)
    return prompt


def seconds(prompt: SystemPrompt) -> float:
    """What a user waits for."""
    start = perf_counter()
    lint(prompt)
    return perf_counter() - start


def by_rule(prompt: SystemPrompt) -> list[tuple[float, str, int]]:
    """The time of each rule, the longest first, and how many findings it has."""
    survey = gather(Wanted(prompt, AssembleContext(), (), again=True, section_tokens=LintConfig().section_tokens))
    taken: list[tuple[float, str, int]] = []
    for rule in RULES:
        start = perf_counter()
        findings = list(rule.find(survey))
        taken.append((perf_counter() - start, f"{rule.code} {rule.name}", len(findings)))
    return sorted(taken, reverse=True)


if __name__ == "__main__":
    for title, scopes, alike in (("one scope", 0, False), ("all alike", 0, True), ("10 scopes", SCOPES, False)):
        best = min(seconds(build(scopes=scopes, alike=alike)) for _ in range(3))
        print(f"{SECTIONS:,} sections, {title:10} {best:6.2f} s")
    print()
    for taken, name, findings in by_rule(build(scopes=SCOPES, alike=False))[:10]:
        print(f"{taken * 1000:8.1f} ms  {name}  {findings or ''}".rstrip())
