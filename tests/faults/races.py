"""Two processes that want one session: `python -m tests.faults.races FOLDER RACES SEED`.

Both claim it at once; one gets it. While it writes, it is stopped at a random moment (SIGSTOP), and the other takes the
session over. Then the first goes on, and must be told so: it writes nothing more.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

import anyio
from tests.session.support import answer, ask, end, take_turn

from foreword.errors import FlushFailedError, SessionBusyError, SessionFencedError, StoreError
from foreword.session import Log, Session, open_log, verify
from foreword.session.store.sqlite import SqliteStore

_STORES = 25
"""How many races are on one store, one after the other."""

_TURNS = 3
"""How many turns the second one takes before the first goes on, and after."""

_PATIENCE = 0.2
"""Seconds to wait for a writer that may have been stopped within a transaction."""


async def racer(path: Path, tell: int, heed: Callable[[], str]) -> None:
    """In a child: claim the session, or take it over when told to."""

    def say(line: str) -> None:
        os.write(tell, f"{line}\n".encode())

    async with SqliteStore(path, lock_timeout=_PATIENCE) as store, open_log(store) as log:
        say("ready")
        heed()
        try:
            session = await log.resume("s")
        except SessionBusyError as error:
            say(f"busy {error.pid}")
            await second(log, say, heed)
        else:
            await first(session, say)


async def first(session: Session, say: Callable[[str], None]) -> None:
    """Write until fenced off, with pauses as a model makes them."""
    say(f"mine {os.getpid()}")
    try:
        while True:
            await anyio.sleep(random.uniform(0, 0.01))
            ask(session)
            say(f"head {await flushed(session)}")
            answer(session)
            end(session)
            say(f"head {await flushed(session)}")
    except SessionFencedError as error:
        say(f"fenced {error.epoch} {error.now}")
        with suppress(SessionFencedError):
            await session.close()


async def second(log: Log, say: Callable[[str], None], heed: Callable[[], str]) -> None:
    """Take the session over, and write some turns while the other is stopped, and some when it goes on."""
    while heed() == "take":
        try:
            session = await log.resume("s", take_over=True)
        except StoreError as error:
            if error.kind != "store_locked":
                raise
            say("locked")
            continue
        for say_when in ("taken", "done"):
            for _ in range(_TURNS):
                take_turn(session)
                say(f"head {await flushed(session)}")
            say(say_when)
            heed()


async def flushed(session: Session) -> str:
    """Its head, once it is written; where the other one writes for too long it asks again, as the error says."""
    while True:
        try:
            return await session.flush()
        except FlushFailedError as error:
            if getattr(error.__cause__, "kind", "") != "store_locked":
                raise


class Racer:
    """A child, as the one who starts it sees it."""

    def __init__(self, path: Path, backend: str) -> None:
        told, tell = os.pipe()
        listen, order = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(told)
            os.close(order)
            signal.alarm(60)
            orders = os.fdopen(listen)
            anyio.run(partial(racer, path, tell, lambda: orders.readline().strip()), backend=backend)
            os._exit(0)
        os.close(tell)
        os.close(listen)
        self._told: IO[str] = os.fdopen(told)
        self._order = order
        self.heads: list[str] = []

    def order(self, what: str) -> None:
        """Tell it what to do next."""
        os.write(self._order, f"{what}\n".encode())

    def hear(self) -> list[str]:
        """What it says next, except for heads, which are kept."""
        while True:
            line = self._told.readline().split()
            if line[:1] != ["head"]:
                return line
            self.heads.append(line[1])

    def hear_head(self) -> None:
        """Wait until it has written something."""
        line = self._told.readline().split()
        assert line[0] == "head", line
        self.heads.append(line[1])

    def stop(self) -> None:
        """Stop it wherever it is."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """Wait until it has ended well."""
        with self._told:
            assert not self.hear(), "it has more to say"
        os.close(self._order)
        _, status = os.waitpid(self.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0


def race(path: Path, chance: random.Random) -> Counter[str]:
    """One race; tells what happened in it."""
    racers = [Racer(path, chance.choice(["asyncio", "trio"])) for _ in range(2)]
    assert [each.hear() for each in racers] == [["ready"]] * 2
    for each in racers:
        each.order("claim")
    said = {each.pid: each.hear() for each in racers}
    winner, loser = sorted(racers, key=lambda each: said[each.pid][0], reverse=True)
    assert said[winner.pid] == ["mine", str(winner.pid)], said
    assert said[loser.pid] == ["busy", str(winner.pid)], said
    for _ in range(chance.randint(1, 3)):
        winner.hear_head()
    time.sleep(chance.uniform(0, 0.02))
    winner.stop()
    figures: Counter[str] = Counter()
    while True:
        loser.order("take")
        answer = loser.hear()
        if answer == ["taken"]:
            break
        assert answer == ["locked"]
        figures["stopped within a transaction"] += 1
        winner.go_on()  # it was stopped within a transaction; nobody can write before that is through
    winner.go_on()
    loser.order("go on")
    fenced = winner.hear()
    assert fenced[0] == "fenced", fenced
    assert int(fenced[2]) == int(fenced[1]) + 1
    assert loser.hear() == ["done"]
    loser.order("end")
    loser.order("end")
    for each in racers:
        each.end()
    anyio.run(check, path, winner.heads, loser.heads)
    return figures


async def check(path: Path, before: list[str], after: list[str]) -> None:
    """One chain, with all that was acknowledged to either of them: first what the one wrote, then what the other."""
    async with open_log(f"sqlite:{path}", read_only=True) as log:
        assert (await verify(log)).intact
        chain = [event.digest.hex() for event in await log.store.events("s")]
        places = [chain.index(head) for head in (*before, *after)]
        assert places == sorted(places)
        assert len(after) == 2 * _TURNS
        row = await log.store.session("s")
        assert row is not None
        assert row.head.hex() == after[-1]


async def begin(path: Path) -> None:
    """A session to race for."""
    async with open_log(f"sqlite:{path}") as log:
        session = await log.create("s")
        take_turn(session)


def main(folder: str, races: str, seed: str) -> None:
    """So many races; prints what happened in them."""
    figures: Counter[str] = Counter()
    path = Path()
    for at in range(int(races)):
        if at % _STORES == 0:
            path = Path(folder) / str(at) / "foreword.db"
            path.parent.mkdir()
            anyio.run(begin, path)
        try:
            figures.update(race(path, random.Random(f"{seed} {at}")))
        except BaseException as error:
            error.add_note(f"in race {at} of seed {seed}, for {path}")
            raise
        figures["races"] += 1
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
