"""The way back: the body of a recorded request, byte for byte, from the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from foreword.errors import BodyNotRecordedError
from foreword.integrations.shape import SHAPE, RecordedBody, Shape
from foreword.session.events import Note, StepStart
from foreword.session.rebuild import Rebuilt, rebuild

if TYPE_CHECKING:
    from foreword.session.finding import Location
    from foreword.session.log import Log
    from foreword.session.rebuild import RecordedLevel

__all__ = ["rebuild_recorded"]

_WHY_NOT: Final[Mapping[RecordedLevel | None, str]] = {
    "assembly": "no recorder saw them, since its model shows no HTTP client (level assembly); one that shows it is "
    "recorded at the level wire, with its bytes",
    "wire": "they were of a form that cannot be made again, or something of them was erased; only their digest is left",
    None: "no recorder saw them, since whoever sent it logged it; the adapter that made them makes them again "
    "(foreword.session.rebuild takes it)",
}
"""Why the bytes of a request cannot be had, by the level at which it was recorded."""


async def rebuild_recorded(log: Log, address: str) -> Rebuilt:
    """Make a recorded request again, with the body that was sent.

    Args:
        log: where it is.
        address: see `foreword.session.address`.

    Returns:
        The request; `Rebuilt.body` holds the bytes.

    Raises:
        BodyNotRecordedError: no recorder saw its bytes, or they were of a form that cannot be made again; the log holds
            their digest then, and what they said.
        SessionError: as `foreword.session.rebuild`.
    """
    rebuilt = await rebuild(log, address)
    location, body = rebuilt.location, rebuilt.attempted.body
    shape = await _shape(log, location) if rebuilt.level == "wire" else None
    if body is None or shape is None:
        raise BodyNotRecordedError(location.session, str(location), _WHY_NOT[rebuilt.level])
    return await rebuild(log, str(location), adapter=RecordedBody(body.adapter, body.version, shape))


async def _shape(log: Log, location: Location) -> Shape | None:
    """The shape that was noted in the step of an attempt; None if there is none, or if it was erased."""
    last: Shape | None = None
    found: Shape | None = None
    async for logged in await log.events(location.session, 0, location.seq, if_erased="mark"):
        event = logged.event
        if isinstance(event, StepStart):
            found = None
        elif isinstance(event, Note) and event.name == SHAPE:
            # Each leans on the one before; where one was erased, those after it are lost up to the next whole one.
            found = last = Shape.from_json(event.data, last) if isinstance(event.data, Mapping) else None
    return found
