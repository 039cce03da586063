"""What one process made of a prompt, so that it can be compared with what another one made.

`Run.of` is made in each process; it goes from one to the other as JSON. Only the process that made a text knows what
is sensitive in it, so a text is masked there: a digest of it as it is travels with it, and by that it is compared. Who
starts the processes is not known here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from foreword.explain.lint.survey import Branch, Survey
from foreword.jsonvalue import thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foreword.prompt.origin import Origin

__all__ = ["Piece", "Run"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One section or tool, whose it is, and how it may be shown."""

    branch: str
    kind: str  # "section" or "tool"
    name: str
    owner: str
    scope: str | None
    source: str | None
    shown: str  # its text, without what is sensitive; of a tool: its schema as JSON, in the order in which it is sent
    digest: str  # of the text as it was sent


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
        """What this process made; the survey's `hide` takes out of it what the environment gave."""
        return cls(variation, tuple(piece for branch in survey.branches for piece in _pieces(branch, survey.hide)))

    def to_json(self) -> dict[str, Any]:
        """The run as JSON."""
        return {"variation": self.variation, "pieces": [asdict(piece) for piece in self.pieces]}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Run:
        """A run from what `to_json` gave."""
        return cls(told["variation"], tuple(Piece(**piece) for piece in told["pieces"]))


def _pieces(branch: Branch, hide: Callable[[str], str]) -> Iterator[Piece]:
    if branch.assembly is None:
        return
    for section in branch.sections:
        text = branch.rendered.get(section.name)
        if text is not None:
            shown = hide(branch.rendered_masked[section.name])
            yield _piece(branch, "section", section.name, section.origin, shown, text)
    for tool, origin in branch.tools:
        schema = _schema(tool.description, thaw(dict(tool.parameters)))
        yield _piece(branch, "tool", tool.name, origin, hide(schema), schema)


def _piece(branch: Branch, kind: str, name: str, origin: Origin, shown: str, text: str) -> Piece:
    source = None if origin.source is None else str(origin.source)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
    return Piece(branch.name, kind, name, origin.owner, origin.scope, source, shown, digest)


def _schema(description: str, parameters: dict[str, Any]) -> str:
    import json

    return json.dumps([description, parameters], ensure_ascii=False)
