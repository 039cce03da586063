"""What the lint's tests share."""

from __future__ import annotations

from collections.abc import Iterable

from foreword import SystemPrompt, ToolSchema
from foreword.explain.lint import Finding, LintConfig, lint


def codes(findings: Iterable[Finding]) -> list[str]:
    """The codes of some findings, in their order."""
    return [finding.code for finding in findings]


def found(prompt: SystemPrompt, code: str) -> list[Finding]:
    """What one rule finds in a prompt."""
    return lint(prompt, LintConfig(select=(code,)))


def only(prompt: SystemPrompt, code: str) -> Finding:
    """The one thing that a rule finds in a prompt."""
    findings = found(prompt, code)
    assert len(findings) == 1, "\n".join(map(str, findings)) or f"{code} finds nothing"
    return findings[0]


def clerk(text: str | None = None, **options: object) -> SystemPrompt:
    """A prompt with a persona, and a section "desk:text" of the owner "desk" if a text is given."""
    prompt = SystemPrompt(persona="You are a clerk.")
    if text is not None:
        prompt.owner("desk").section("desk:text", text, order=20, **options)  # type: ignore[call-overload]
    return prompt


def tool(name: str, description: str = "Does something.") -> ToolSchema:
    """A tool without arguments."""
    return ToolSchema(name, description, {"type": "object"})
