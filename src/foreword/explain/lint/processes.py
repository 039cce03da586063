"""What one process made of a prompt, so that it can be compared with what another one made.

`Run.of` is made in each process; it goes from one to the other as JSON. Who starts the processes is not known here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from foreword.explain.lint.survey import Branch, Survey
from foreword.jsonvalue import thaw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.prompt.origin import Origin

__all__ = ["Piece", "Run"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One section or tool as it was sent, and whose it is."""

    branch: str
    kind: str  # "section" or "tool"
    name: str
    owner: str
    scope: str | None
    source: str | None
    text: str  # of a tool: its schema as JSON, in the order in which it is sent


@dataclass(frozen=True, slots=True)
class Run:
    """What one process made.

    Attributes:
        variation: what was different in this process, as the end of a sentence; empty for the first.
        pieces: what it sent, branch by branch, in order.
    """

    variation: str
    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, survey: Survey, variation: str) -> Run:
        """What this process made."""
        return cls(variation, tuple(piece for branch in survey.branches for piece in _pieces(branch)))

    def to_json(self) -> dict[str, Any]:
        """The run as JSON."""
        return {"variation": self.variation, "pieces": [asdict(piece) for piece in self.pieces]}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Run:
        """A run from what `to_json` gave."""
        return cls(told["variation"], tuple(Piece(**piece) for piece in told["pieces"]))


def _pieces(branch: Branch) -> Iterator[Piece]:
    if branch.assembly is None:
        return
    for section in branch.sections:
        text = branch.rendered.get(section.name)
        if text is not None:
            yield _piece(branch, "section", section.name, section.origin, text)
    for tool, origin in branch.tools:
        yield _piece(branch, "tool", tool.name, origin, _schema(tool.description, thaw(dict(tool.parameters))))


def _piece(branch: Branch, kind: str, name: str, origin: Origin, text: str) -> Piece:
    source = None if origin.source is None else str(origin.source)
    return Piece(branch.name, kind, name, origin.owner, origin.scope, source, text)


def _schema(description: str, parameters: dict[str, Any]) -> str:
    import json

    return json.dumps([description, parameters], ensure_ascii=False)
