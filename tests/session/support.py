"""What the tests of sessions share: a script of events, clocks, stores, and a store that can be tampered with."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foreword import Rendering, SystemPrompt, ToolSchema
from foreword.session import (
    RUNTIME_CONTEXT,
    AssistantSaid,
    BodyDigest,
    Content,
    ContextPart,
    HeaderReason,
    HeaderWritten,
    Log,
    MessageSource,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    Timings,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
    verify_request,
)
from foreword.session.store import BlobRow, EventRow, SessionRow, Store, open_store
from foreword.testing.memory_store import MemoryStore
from foreword.wire.chunks import Usage
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig, ModelRequest

CONFIG = ModelConfig("openai", "gpt-5", {"temperature": 0.5, "stop": ["END"]})
SEARCH = ToolSchema("search", "Finds orders.", {"type": "object", "properties": {"id": {"type": "string"}}})
HEADER = RequestHeader(CONFIG, ("You are a clerk.", "Be brief."), (SEARCH,))

Opening = Callable[[], Any]


@dataclass
class Clock:
    """A clock that a test moves by hand; each look takes a millisecond."""

    now: int = 1_700_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


def counted_entropy() -> Callable[[int], bytes]:
    """Bytes that are all different and the same in every run."""
    numbers = itertools.count()
    return lambda size: blake2b(str(next(numbers)).encode(), digest_size=size).digest()


class Stores:
    """One place for sessions, which can be opened anew as after a restart."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._file = kind, folder / "log.db"
        self._memory = MemoryStore()

    def open(self) -> Store:
        if self.kind == "memory":
            self._memory = self._memory.reopened()
            return self._memory
        return open_store(f"sqlite:{self._file}")

    def files(self) -> list[Path]:
        """The files that the store keeps sessions in: its own, and those that SQLite keeps beside it."""
        return [file for file in self._file.parent.glob(f"{self._file.name}*") if file.is_file()]

    @asynccontextmanager
    async def log(self, clock: Callable[[], int] | None = None, *, content: Content = "full") -> AsyncIterator[Log]:
        async with self.open() as store, open_log(store, clock=clock or Clock(), content=content) as log:
            yield log


def contents_of(files: Iterable[Path]) -> bytes:
    """The bytes of files, read by another process: closing a file here would let go of SQLite's locks on it."""
    return subprocess.run(["cat", "/dev/null", *map(str, files)], capture_output=True, check=True).stdout


# -- scripts -----------------------------------------------------------------------------------------------------------


def ask(session: Session, text: str = "Why is order 4711 late?", header: RequestHeader = HEADER) -> tuple[int, int]:
    """A new turn up to its first attempt, which is open then; gives turn and step."""
    session.append(TurnStart(session.turn + 1))
    session.append(StepStart(session.turn, 1))
    session.append(UserSaid(UserMessage(text)))
    attempt(session, header)
    return session.turn, session.step


def attempt(
    session: Session, header: RequestHeader = HEADER, number: int = 1, *, reason: HeaderReason | None = None
) -> bytes:
    """Write the header if it is due, and the attempt; gives the canonical bytes of the request."""
    due: HeaderReason = "initial" if session.header is None else "change"
    if session.header != header or reason is not None:
        session.append(HeaderWritten(header, reason or due))
    request = header.request(session.messages)
    session.append(RequestAttempted(session.turn, session.step, number, BodyDigest.of("json", "1", body(request))))
    verify_request(session, request)
    return request.canonical()


def answer(session: Session, text: str = "It waits for stock.", *calls: ToolCall) -> None:
    """The open attempt ends with an answer."""
    turn, step = session.turn, session.step
    finish = "tool-calls" if calls else "stop"
    session.append(RequestEnded(turn, step, 1, finish, Usage(120, 30, 100), timings=Timings(900, 210)))
    session.append(AssistantSaid(turn, step, AssistantMessage(text, calls)))


def end(session: Session) -> None:
    """The open step and turn end well."""
    session.append(StepEnd(session.turn, session.step))
    session.append(TurnEnd(session.turn, "completed"))


def take_turn(session: Session, text: str = "Why is order 4711 late?", header: RequestHeader = HEADER) -> None:
    """A whole turn of one step."""
    ask(session, text, header)
    answer(session)
    end(session)


def take_tool_turn(session: Session, text: str = "Where is it?") -> None:
    """A whole turn of two steps, with one tool call between them."""
    turn, step = ask(session, text)
    call = ToolCall("call-1", "search", '{"id": "4711"}')
    answer(session, "", call)
    session.append(ToolCalled(turn, step, call))
    session.append(ToolAnswered(turn, step, ToolMessage("call-1", "search", "In Hamburg.")))
    session.append(StepEnd(turn, step))
    session.append(StepStart(turn, step + 1))
    attempt(session)
    answer(session, "In Hamburg.")
    end(session)


def snapshot(text: str, *parts: str) -> UserSaid:
    """A snapshot of runtime contexts, as the loop writes them."""
    source = MessageSource(RUNTIME_CONTEXT, "foreword", tuple(ContextPart(part, text) for part in parts))
    return UserSaid(UserMessage(text), source)


def body(request: ModelRequest) -> bytes:
    """What the adapter below sends."""
    return b"body of " + request.canonical()


class JsonAdapter:
    """As much of a model adapter as rebuilding needs."""

    def __init__(self, name: str = "json", version: str = "1") -> None:
        self.name, self.version = name, version

    def body(self, request: ModelRequest) -> bytes:
        return body(request)


def clerk(texts: Sequence[str] = ("You are a clerk.", "Be brief.")) -> tuple[SystemPrompt, dict[int, str]]:
    """A prompt of sections whose texts may be changed, with a context and a tool."""
    prompt, told = SystemPrompt(), dict(enumerate(texts))
    for number in told:
        prompt.section(f"clerk:section-{number}", lambda number=number: told[number], order=number)  # type: ignore[misc]
    prompt.context("git", lambda: "main, clean", order=1)
    prompt.tools([SEARCH])
    return prompt, told


def header_of(rendering: Rendering) -> RequestHeader:
    return RequestHeader.of(rendering, CONFIG)


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass
class Shelf:
    """All rows of a store, to be changed by hand and read as a store again."""

    rows: list[SessionRow] = field(default_factory=list)
    kept_events: dict[str, list[EventRow]] = field(default_factory=dict)
    kept_refs: dict[str, list[tuple[bytes, int]]] = field(default_factory=dict)
    kept_blobs: dict[bytes, BlobRow] = field(default_factory=dict)

    @classmethod
    async def of(cls, store: Store) -> Shelf:
        """Everything that a store holds, trees included."""
        shelf = cls(await store.sessions())
        for row in shelf.rows:
            shelf.kept_events[row.id] = await store.events(row.id)
            shelf.kept_refs[row.id] = await store.refs(row.id)
            wanted = {digest for digest, _ in shelf.kept_refs[row.id]}
            while wanted:
                found = await store.blobs(wanted)
                shelf.kept_blobs |= found
                wanted = {child for blob in found.values() for child in _children(blob)} - shelf.kept_blobs.keys()
        return shelf

    def size(self) -> int:
        """The bytes in all rows, a number counted as eight."""
        found = sum(len(row.id) + len(row.genesis) + len(row.head) + 24 + len(row.parent or "") for row in self.rows)
        for session, events in self.kept_events.items():
            found += sum(len(session) + 8 + len(event.envelope) + len(event.digest) for event in events)
            found += sum(len(session) + 8 + len(digest) for digest, _ in self.kept_refs[session])
        blobs = self.kept_blobs.values()
        return found + sum(len(blob.digest) + len(blob.salt or b"") + len(blob.body or b"") for blob in blobs)

    async def session(self, id: str) -> SessionRow | None:
        return next((row for row in self.rows if row.id == id), None)

    async def sessions(self) -> list[SessionRow]:
        return list(self.rows)

    async def events(self, id: str, first: int = 0, stop: int | None = None) -> list[EventRow]:
        events = self.kept_events.get(id, [])
        return [event for event in events if first <= event.seq and (stop is None or event.seq < stop)]

    async def refs(self, id: str, first: int = 0, stop: int | None = None) -> list[tuple[bytes, int]]:
        refs = self.kept_refs.get(id, [])
        return [ref for ref in refs if first <= ref[1] and (stop is None or ref[1] < stop)]

    async def blobs(self, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
        return {digest: self.kept_blobs[digest] for digest in digests if digest in self.kept_blobs}

    async def close(self) -> None:
        pass

    def log(self) -> Log:
        """The log in these rows, to be read."""
        return open_log(self)  # type: ignore[arg-type] # what is read of a store is here


def _children(blob: BlobRow) -> list[bytes]:
    import json

    body = blob.body or b""
    if blob.salt is not None or not body.startswith(b'{"k":['):
        return []
    return [bytes.fromhex(child) for child in json.loads(body)["k"]]
