"""The runtime-context snapshot: whether the model has to be told the dynamic facts anew, and in which message.

They never enter the system text. When they differ from what the model still sees of them, one complete new snapshot
joins the history; earlier ones stay, and the newest counts. What the model sees is read from the log, so an agent that
goes on after a restart repeats nothing, and one whose snapshot was compacted away tells it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foreword.errors import ForgedSnapshotError
from foreword.prompt.render import render_context_sections
from foreword.session.events import RUNTIME_CONTEXT, ContextPart, MessageSource, UserSaid
from foreword.wire.messages import UserMessage

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from foreword.prompt.assembly import PromptAssembly
    from foreword.session.events import HeldSnapshot

__all__ = ["CLEARED", "due_snapshot", "with_honest_sources"]

CLEARED: Final = "There is no current runtime context any more. Earlier runtime-context snapshots no longer apply."
"""What the model is told when the last context has gone."""

_WRITER = "foreword"


def due_snapshot(
    held: HeldSnapshot, assembly: PromptAssembly, snapshot: str, sensitive: Container[int] = ()
) -> UserSaid | None:
    """The message that tells the model how things stand now; None if it knows.

    Args:
        held: what the model still sees.
        assembly: of the step.
        snapshot: what it rendered to.
        sensitive: the positions in it of the contexts that are not to be shown to whoever looks on.
    """
    if snapshot:
        if held.text == snapshot:
            return None
        told = enumerate(render_context_sections(assembly))
        parts = tuple(ContextPart(name, text, at in sensitive) for at, (name, text) in told)
        return _message(snapshot, parts)
    return None if held.state == "never" or held.text == CLEARED else _message(CLEARED, ())


def _message(text: str, parts: tuple[ContextPart, ...]) -> UserSaid:
    return UserSaid(UserMessage(text), MessageSource(RUNTIME_CONTEXT, _WRITER, parts))


def with_honest_sources(messages: Iterable[UserSaid], snapshot: UserSaid | None) -> tuple[UserSaid, ...]:
    """The messages that listeners want a step to be entered with.

    A listener may reword the snapshot, keeping its source; then its parts go, since they no longer make up its text. If
    one of them was sensitive, the whole is.

    Raises:
        ForgedSnapshotError: one that the loop did not write says that it is a snapshot.
    """
    told: list[UserSaid] = []
    for said in messages:
        source = said.source
        if source is not None and source.kind == RUNTIME_CONTEXT:
            if snapshot is None or source is not snapshot.source:
                raise ForgedSnapshotError(said.message.text)
            if said.message != snapshot.message:
                parts = [replace(part, text=said.message.text) for part in source.parts if part.sensitive]
                said = replace(said, source=replace(source, parts=tuple(parts)))
            snapshot = None
        told.append(said)
    return tuple(told)
