"""The plugin, and its config. What it registers is its own, and goes when the plugin goes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from foreword import DOMAIN_ORDER, TOOL_GUIDANCE_ORDER, Placeholder, SystemPrompt, ToolSchema, plugin
from pydantic import BaseModel, ConfigDict

TEXTS = Path(__file__).parent / "texts"

LANGUAGES = {"en-GB": "British English", "en-US": "American English"}

FIND_TERM = ToolSchema(
    "find_term",
    "Find out how Acme calls something.",
    {
        "type": "object",
        "properties": {"meaning": {"type": "string", "description": "In your own words."}},
        "required": ["meaning"],
        "additionalProperties": False,
    },
)


class HouseStyle(BaseModel):
    """The plugin's part of a deployment file. What does not fit is told with its line, before anything is loaded."""

    model_config = ConfigDict(extra="forbid")

    language: Literal["en-GB", "en-US"] = "en-GB"
    avoid: list[str] = []  # words that are not used
    terms: Path | None = None  # a file with one term a line; without it there is no tool, either


@plugin(name="acme-house-style", config=HouseStyle)
def house_style(config: HouseStyle, prompt: SystemPrompt) -> None:
    """Contribute the style, and the terms if there are any."""
    prompt.variable("house_language", LANGUAGES[config.language])
    prompt.section("acme-house-style:writing", TEXTS / "writing.md", order=DOMAIN_ORDER)
    if config.avoid:
        prompt.variable("house_avoid", ", ".join(f"“{word}”" for word in config.avoid))
        prompt.section("acme-house-style:avoid", "Never write {{house_avoid}}.", order=DOMAIN_ORDER + 1)
    if config.terms is not None:
        _offer_terms(prompt, config.terms)


def _offer_terms(prompt: SystemPrompt, file: Path) -> None:
    """Offer the terms: a tool to find one, with its guidance, and the list, which may change while an agent runs."""
    prompt.tools([FIND_TERM])
    prompt.section("tool:find_term", TEXTS / "find_term.md", order=TOOL_GUIDANCE_ORDER, requires_tools=[FIND_TERM.name])

    @prompt.context(
        "acme-house-style:terms",
        order=10,
        verbatim=True,  # the file is not ours: braces in it are braces
        on_error=Placeholder("Acme's terms cannot be read just now."),
    )
    def terms() -> str:
        lines = file.read_text("utf-8").split("\n")
        return "\n".join(["Acme's terms:", *(f"- {line.strip()}" for line in lines if line.strip())])
