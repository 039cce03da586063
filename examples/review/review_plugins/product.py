"""What a review is, and the house style that it is held to."""

from __future__ import annotations

from pathlib import Path

from foreword import DOMAIN_ORDER, Placeholder, SystemPrompt, plugin

from .repository import Repository

TEXTS = Path(__file__).parents[1] / "texts"


@plugin(name="review")
def review(prompt: SystemPrompt) -> None:
    """What a review is. Its limits outlast every listener, and no agent may replace them."""
    prompt.section("review:task", TEXTS / "task.md", order=DOMAIN_ORDER)
    prompt.section("review:report", TEXTS / "report.md", order=DOMAIN_ORDER + 20)
    prompt.section("review:limits", TEXTS / "limits.md", order=DOMAIN_ORDER + 30)
    prompt.protect(sections=["review:limits"])


@plugin(name="style")
def style(prompt: SystemPrompt, repository: Repository) -> None:
    """The house style, with the line length that the repository has set."""
    prompt.section("style:guide", TEXTS / "style.md", order=DOMAIN_ORDER + 10)

    @prompt.variable("line_length", on_error=Placeholder("88"))
    def line_length() -> str:
        return str(repository.settings()["tool"]["ruff"]["line-length"])
