"""The way back: the body of a recorded request, byte for byte, from the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from foreword.errors import RequestMismatchError
from foreword.integrations.shape import SHAPE, RecordedBody, Shape
from foreword.session.events import Note, StepStart
from foreword.session.rebuild import Rebuilt, rebuild

if TYPE_CHECKING:
    from foreword.session.finding import Location
    from foreword.session.log import Log

__all__ = ["rebuild_recorded"]


async def rebuild_recorded(log: Log, address: str) -> Rebuilt:
    """Make a recorded request again, with the body that was sent.

    Args:
        log: where it is.
        address: see `foreword.session.address`.

    Returns:
        The request; `Rebuilt.body` holds the bytes.

    Raises:
        RequestMismatchError: no recorder saw its bytes, or they were of a form that cannot be made again; the log holds
            their digest then, and what they said.
        SessionError: as `foreword.session.rebuild`.
    """
    rebuilt = await rebuild(log, address)
    where = f"the body of {rebuilt.location}"
    body = rebuilt.attempted.body
    if body is None or rebuilt.level != "wire":
        raise RequestMismatchError(rebuilt.location.session, where, f"it was recorded at the level {rebuilt.level}")
    shape = await _shape(log, rebuilt.location)
    if shape is None:
        raise RequestMismatchError(rebuilt.location.session, where, "only its digest was recorded")
    return await rebuild(log, str(rebuilt.location), adapter=RecordedBody(body.adapter, body.version, shape))


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
