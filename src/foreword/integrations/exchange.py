"""One request over HTTP and its answer, as a recorder sees them: bytes in, a `Sent` and an `Answered` out."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.agent.models import failures
from foreword.integrations.formats import Format, format_of
from foreword.integrations.formats.answers import events_of
from foreword.integrations.told import NO_CREDITS, Answered, Body, Credits, Sent, Told
from foreword.prompt.spans import SEPARATOR
from foreword.wire.chunks import Finish, ModelFailure
from foreword.wire.request import ModelConfig, ModelRequest

if TYPE_CHECKING:
    from foreword.integrations.book import Entry, Place

__all__ = ["VERSION", "Exchange", "Where", "exchange_format", "sent_of"]

VERSION: Final = "wire/1"
"""The version of a recorded body: its level, and that of the shapes that it is made again from."""

_HOSTS: Final[Mapping[str, str]] = {
    "api.anthropic.com": "anthropic",
    "api.deepseek.com": "deepseek",
    "api.openai.com": "openai",
    "generativelanguage.googleapis.com": "gemini",
}


@dataclass(frozen=True, slots=True)
class Where:
    """What a recorder knows of a request beside its bytes."""

    place: Place
    credits: Credits = NO_CREDITS
    provider: str | None = None  # None: the host tells


def sent_of(format: Format, content: bytes, host: str, where: Where, *, retry: bool) -> Sent:
    """What a body says.

    Raises:
        Exception: it is not in its format; which one depends on the fault.
    """
    told = format.read(json.loads(content))
    config = ModelConfig(where.provider or _HOSTS.get(host, host), told.model, told.settings)
    body = Body(format.name, VERSION, content)
    return Sent(_fitted(told, config, content), config, where.credits, body, retry)


def _fitted(told: Told, config: ModelConfig, content: bytes) -> Told:
    """What was told, with a shape that gives this very body again, or without one."""
    if told.shape is None:
        return told
    history = tuple(heard.message for heard in told.history)
    request = ModelRequest(SEPARATOR.join(told.instructions), told.tools, history, config)
    return replace(told, shape=told.shape.fitting(request, content))


class Exchange:
    """A request that was logged, and its answer as it arrives.

    Attributes:
        entry: where it is in the log.
        format: what it is written in.
    """

    def __init__(self, entry: Entry, format: Format) -> None:
        self.entry, self.format = entry, format
        self._sent = time.monotonic()
        self._first: float | None = None
        self._pieces: list[bytes] = []
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._cut: BaseException | None = None
        self._whole = self._over = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The answer begins."""
        self.entry.answered = True
        self._status, self._headers = status, {name.lower(): value for name, value in headers.items()}

    def take(self, piece: bytes) -> None:
        """A piece of it."""
        if self._first is None:
            self._first = time.monotonic()
        self._pieces.append(piece)

    def whole(self) -> None:
        """That was all of it."""
        self._whole = True

    def cut(self, error: BaseException) -> None:
        """It was cut off."""
        self._cut = error

    def over(self) -> bool:
        """Nothing more comes; True if that was not known yet."""
        was, self._over = self._over, True
        return not was

    @property
    def content(self) -> bytes:
        """What has arrived, as it came over the wire."""
        return b"".join(self._pieces)

    def answered(self, content: bytes) -> Answered:
        """What came of it, given the content as it is read."""
        milliseconds = round((time.monotonic() - self._sent) * 1000)
        first = None if self._first is None else round((self._first - self._sent) * 1000)
        try:
            finish, message = self._told(content)
        except Exception as fault:  # the border: a server may answer anything
            why = f"the answer cannot be read: {type(fault).__name__}: {fault}"
            finish, message = Finish("error", failure=ModelFailure(why, "malformed_response", self._status)), None
        return Answered(finish, message, milliseconds, first)

    def _told(self, content: bytes) -> tuple[Finish, Any]:
        if self._status >= 400:
            return Finish("error", failure=self._failure(content)), None
        is_stream = self._headers.get("content-type", "").startswith("text/event-stream")
        events = (
            events_of(content) if is_stream else [cast("Mapping[str, Any]", json.loads(content))] if content else []
        )
        failed = next((event for event in events if event.get("type") == "error" or "error" in event), None)
        if is_stream and failed is not None:
            return Finish("error", failure=self._failure(json.dumps(failed).encode())), None
        message, finish = self.format.answer(events, is_stream)
        code = "" if finish.failure is None else finish.failure.code
        if code == "stream_cut" and not self._whole:  # it was not the server that ended it
            return self._aborted(finish), message if message.text else None
        return finish, message

    def _aborted(self, finish: Finish) -> Finish:
        cut = self._cut
        if isinstance(cut, Exception):
            why = f"the connection failed: {type(cut).__name__}: {cut}"
            return Finish("error", finish.usage, ModelFailure(why, "stream_cut", transient=True))
        return Finish("aborted", finish.usage, raw_reason="nobody read on" if cut is None else type(cut).__name__)

    def _failure(self, content: bytes) -> ModelFailure:
        """What an answer says that is a failure, in the way that all these providers say it."""
        try:
            told: Any = json.loads(content)
        except ValueError:
            told = None
        told = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        error: Any = told.get("error", told)
        fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
        words = tuple(str(fields[name]) for name in ("code", "type") if fields.get(name))
        said = str(fields.get("message") or content[:1000].decode(errors="replace"))
        status = self._status if self._status >= 400 else None
        return failures.classify(failures.Answered(said, status, words, self._headers, time.time()))


def exchange_format(method: str, path: str) -> Format | None:
    """The format of a request; None if it is none that is recorded."""
    return format_of(path) if method == "POST" else None
