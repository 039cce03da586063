"""The one workload, as plain formulas; `node/workload.mjs` holds the same ones.

A *step* is the full prompt text of one scope and all tool schemas in the order of their names. Sections have 640
characters with one reference to a variable, and a tenth of them are functions; tools have six described parameters.
Each scope has a persona and a value of the variable ``v0`` of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ["PERSONA", "SIZES", "Workload", "workload"]

PERSONA: Final = "deployment:persona"
SECTION_CHARACTERS: Final = 640
FILL: Final = (
    "Read the file before you change it, keep the change small, and say what you did not check. "
    "Prefer the tools of this project over a shell pipeline, and never guess a path that you can list. "
)


@dataclass(frozen=True, slots=True)
class Workload:
    """How many there are of each, and what they are. Section 0 is the persona, which every scope shadows."""

    sections: int
    variables: int
    tools: int
    scopes: int

    def name(self, section: int) -> str:
        return f"s{section}" if section else PERSONA

    def order(self, section: int) -> int:
        return 100 + (section * 37) % 97 if section else 0

    def ordered(self) -> list[int]:
        """The sections as they stand in the prompt: equal orders as registered."""
        return sorted(range(self.sections), key=self.order)

    def is_dynamic(self, section: int) -> bool:
        """Whether it is given as a function."""
        return section % 10 == 5

    def variable(self, section: int) -> str:
        """The variable that a section refers to."""
        return f"v{section % self.variables}" if section else "v1"

    def text(self, section: int) -> str:
        """The template of a section that all scopes see."""
        reference = "{{" + self.variable(section) + "}}"
        if not section:
            return padded(f"You are agent -none and you work on {reference}. ", reference)
        return padded(f"Section {section:05d}: this guidance applies while {reference} holds. ", reference)

    def halves(self, section: int) -> tuple[str, str]:
        """A section's text before and after its reference."""
        before, after = self.text(section).split("{{" + self.variable(section) + "}}")
        return before, after

    def persona(self, scope: int) -> str:
        """The template of a scope's own persona."""
        return padded(f"You are agent {scope:05d} and you work on {{{{v1}}}}. ", "{{v1}}")

    def scope_value(self, scope: int) -> str:
        """What ``v0`` is in a scope."""
        return f"agent-{scope:04d}"

    def values(self) -> dict[str, str]:
        """The variables as all scopes see them."""
        return {f"v{at}": f"value-{at:04d}" for at in range(self.variables)}

    def values_of(self, scope: int) -> dict[str, str]:
        """The variables as a scope sees them."""
        return {**self.values(), "v0": self.scope_value(scope)}

    def tool(self, number: int) -> dict[str, Any]:
        described = "Parameter {} of tool {}, described in one line."
        return {
            "name": f"tool_{number:04d}",
            "description": f"Tool number {number} does one thing, described in a sentence or two for the model.",
            "parameters": {
                "type": "object",
                "properties": {
                    f"p{at}": {"type": "string", "description": described.format(at, number)} for at in range(6)
                },
                "required": ["p0", "p1"],
            },
        }

    def tool_list(self) -> list[dict[str, Any]]:
        """The tools as they are registered, which is not by name."""
        return [self.tool(at) for at in sorted(range(self.tools), key=lambda at: ((at * 7919) % self.tools, at))]

    def expected(self, scope: int) -> str:
        """The prompt that everybody has to come to."""
        values = self.values_of(scope)
        texts: list[str] = []
        for section in self.ordered():
            variable = self.variable(section)
            template = self.text(section) if section else self.persona(scope)
            texts.append(template.replace("{{" + variable + "}}", values[variable]))
        return "\n\n".join(texts)


SIZES: Final = {
    "small": Workload(sections=20, variables=10, tools=20, scopes=10),
    "medium": Workload(sections=100, variables=30, tools=60, scopes=100),
    "large": Workload(sections=1000, variables=100, tools=200, scopes=1000),
}


def workload(size: str, **changes: int | None) -> Workload:
    """A size, with some of its numbers changed."""
    return replace(SIZES[size], **{name: number for name, number in changes.items() if number is not None})


def padded(head: str, reference: str) -> str:
    """A template of the right length; a reference counts as its value, which has 10 characters."""
    missing = SECTION_CHARACTERS - (len(head) - len(reference) + 10)
    return head + (FILL * (missing // len(FILL) + 1))[:missing]


def filled(halves: tuple[str, str], variable: str) -> Callable[[dict[str, str]], str]:
    """A dynamic section as one writes it beside a template engine: a function of the variables."""
    before, after = halves
    return lambda values: f"{before}{values[variable]}{after}"
