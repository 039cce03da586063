"""What victims do to a log until they are killed, and the look at what they left.

A victim tells of each thing that was acknowledged to it, one line each, at once:

    flushed SESSION HEAD    the session holds all up to this head
    erased TEXT             no file of the store holds this text any more
    format NUMBER           the store was brought to this format
    exported NAME           this file beside the store is a whole copy
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import formats
from tests.session.store.support import left_of
from tests.session.support import answer, ask, attempt, end, take_tool_turn

from foreword.session import Log, Session, StepEnd, StepStart, open_log, rebuild, verify

__all__ = ["KINDS", "LOST", "Told", "Victim", "check", "do"]

KINDS = ("append", "checkpoint", "erase", "fork", "migrate", "export", "take over")
"""What victims are killed in."""

LOST = "has lost what was acknowledged"
"""What is said of a session that lacks a head."""

_MOST_SESSIONS = 4


@dataclass
class Told:
    """What victims of one store have told so far."""

    heads: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    erased: set[str] = field(default_factory=set[str])
    format: int = 0
    copies: set[str] = field(default_factory=set[str])
    lines: int = 0

    def take(self, lines: Iterable[str]) -> None:
        """Take in more lines."""
        for line in lines:
            self.lines += 1
            match line.split():
                case ["flushed", session, head]:
                    self.heads.setdefault(session, []).append(head)
                case ["erased", text]:
                    self.erased.add(text)
                case ["format", number]:
                    self.format = max(self.format, int(number))
                case ["exported", name]:
                    self.copies.add(name)
                case _:
                    raise AssertionError(f"a victim told {line!r}")


class Victim:
    """Does things to a log, and tells what was acknowledged.

    Args:
        path: the file; what is there is gone on with.
        chance: decides what is done.
        tell: takes each line.
    """

    def __init__(self, path: Path, chance: random.Random, tell: Callable[[str], None]) -> None:
        self.path, self.chance, self.tell = path, chance, tell
        self.said: list[str] = []  # texts that can be erased
        self.log: Log
        self.session: Session

    async def open(self) -> None:
        """Open the log, and go on with a session, or begin one."""
        self.log = await open_log(f"sqlite:{self.path}").__aenter__()
        self.tell(f"format {formats.now()}")
        there = [info.id for info in await self.log.sessions()]
        if there and self.chance.random() < 0.9:
            self.session = await self.log.resume(self.chance.choice(there))
        else:
            self.session = await self.log.create(labels={"ticket": "4711"})
        await self.flush()

    async def close(self) -> None:
        """Close the log."""
        await self.log.close()

    async def flush(self) -> None:
        """Make durable what there is."""
        self.tell(f"flushed {self.session.id} {await self.session.flush()}")

    def _text(self) -> str:
        text = f"secret{self.chance.getrandbits(64):016x}"
        self.said.append(text)
        return text

    async def append(self) -> None:
        """A turn or two."""
        session, chance = self.session, self.chance
        ask(session, f"Find {self._text()}. {'x' * chance.choice([0, 100, 2000, 20_000])}")
        await self.flush()
        if chance.random() < 0.3:  # a second step
            answer(session, f"What about {self._text()}?")
            session.append(StepEnd(session.turn, session.step))
            session.append(StepStart(session.turn, session.step + 1))
            attempt(session)
            await self.flush()
        answer(session)
        end(session)
        await self.flush()
        if chance.random() < 0.3:
            take_tool_turn(session)
            await self.flush()

    async def checkpoint(self) -> None:
        """A turn with a checkpoint in it, besides the one at its end."""
        ask(self.session, f"Find {self._text()}.")
        await self.flush()
        await self.log.store.checkpoint()
        answer(self.session)
        end(self.session)
        await self.flush()

    async def erase(self) -> None:
        """Take out of the log something that was said here: long ago, or just now, so that it is in the write-ahead log."""
        now = not self.said or self.chance.random() < 0.5
        if now:
            ask(self.session, f"Find {self._text()}.")
            await self.flush()
        text = self.said.pop(-1 if now else self.chance.randrange(len(self.said)))
        report = await self.log.erase(match=text)
        assert report.complete, "nobody else reads here"
        self.tell(f"erased {text}")
        if now:
            answer(self.session)
            end(self.session)
        await self.flush()

    async def fork(self) -> None:
        """Fork the session, and perhaps go on with the fork."""
        if len(await self.log.sessions()) > _MOST_SESSIONS:
            await self.append()
            return
        fork = await self.session.fork()
        self.tell(f"flushed {fork.id} {await fork.flush()}")
        if self.chance.random() < 0.5:
            await self.session.close()
            self.session = fork
        else:
            await fork.close()

    async def migrate(self) -> None:
        """Open the store as a newer Foreword does."""
        await self.close()
        formats.upgrade(self.chance.choice([1, 1, 2]))
        await self.open()

    async def export(self) -> None:
        """Make a copy beside the store."""
        copy = self.path.with_name(f"copy-{self.chance.getrandbits(32):08x}.db")
        await self.log.store.export(copy)
        self.tell(f"exported {copy.name}")

    async def take_over(self) -> None:
        """Take the session over from oneself."""
        self.session = await self.log.resume(self.session.id, take_over=True)
        await self.flush()

    async def do(self, kind: str) -> None:
        """Do one thing of a kind."""
        deeds: dict[str, Callable[[], Awaitable[None]]] = {
            "append": self.append, "checkpoint": self.checkpoint, "erase": self.erase, "fork": self.fork,
            "migrate": self.migrate, "export": self.export, "take over": self.take_over,
        }  # fmt: skip
        await deeds[kind]()


async def do(path: Path, chance: random.Random, tell: Callable[[str], None], kind: str, times: int = 1_000_000) -> None:
    """Be a victim that does things mostly of one kind, so many of them."""
    victim = Victim(path, chance, tell)
    await victim.open()
    for _ in range(times):
        await victim.do("append" if chance.random() < 0.4 else kind)
    await victim.close()


async def check(path: Path, told: Told) -> None:
    """See that all that was acknowledged is there, that what was erased is not, that all is whole; and go on.

    The first look is before anything is repaired, the second after.
    """
    if not _has_content(path):
        assert not told.lines, f"the store is gone, and {LOST}"
        return
    # Before anything opens the store, which may tidy it.
    assert left_of(path, *(text.encode() for text in told.erased)) == set(), "what was erased is there"
    formats.be(formats.of(path))
    assert formats.now() >= told.format, "the store is of an older format than it was"
    async with open_log(f"sqlite:{path}") as log:
        await _check_whole(log, told)
        for session in [info.id for info in await log.sessions()]:
            resumed = await log.resume(session)
            ask(resumed)
            answer(resumed)
            end(resumed)
            await resumed.close()
            await rebuild(log, session)
        await _check_whole(log, told)
    for name in told.copies:
        formats.be(formats.of(path.with_name(name)))
        async with open_log(f"sqlite:{path.with_name(name)}", read_only=True) as copy:
            assert (await verify(copy)).intact, "a copy is not whole"


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


async def _check_whole(log: Log, told: Told) -> None:
    found = await verify(log)
    assert found.intact, [str(report.fault) for report in found.sessions if report.fault is not None]
    for session, heads in told.heads.items():
        there = {event.digest.hex() for event in await log.store.events(session)}
        assert there.issuperset(heads), f"session {session} {LOST}"
