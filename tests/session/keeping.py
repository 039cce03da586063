"""Stores that are kept for ever: what is in one, and what must be read from it. `python -m tests.session.keeping FILE`

A store of each format is made once, when the format is released, and checked in with what was read from it. It is never
made anew: what a Foreword of then wrote must be read by every later one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from tests.session.support import (
    CONFIG,
    HEADER,
    SEARCH,
    Clock,
    answer,
    ask,
    attempt,
    clerk,
    counted_entropy,
    end,
    header_of,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword import SystemPrompt
from foreword.errors import ForewordError
from foreword.session import (
    RUNTIME_CONTEXT,
    AssistantSaid,
    ContextPart,
    HeaderWritten,
    Log,
    MessageSource,
    Note,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
    rebuild,
    step_trace,
)
from foreword.session.store.sqlite import SqliteStore
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

FOLDER = Path(__file__).parents[1] / "data" / "stores"
"""Where they are: a store and what is in it, for each format."""


async def make(path: Path) -> None:
    """Make a store in which there is something of all that a log can hold."""
    clock, entropy = Clock(), counted_entropy()
    async with SqliteStore(path) as store, open_log(store, clock=clock, entropy=entropy) as log:
        await _everything(log)
        await _forks_and_epochs(log)
        await _what_was_erased(log)
        crashed = await log.create("crashed")
        turn, step = ask(crashed, "Delete the order.")
        answer(crashed, "", ToolCall("call-1", "delete", "{}"), ToolCall("call-2", "search", "{}"))
        crashed.append(ToolCalled(turn, step, ToolCall("call-1", "delete", "{}")))
        await crashed.flush()
        for content in ("masked", "digests"):
            async with open_log(store, clock=clock, entropy=entropy, content=content) as reticent:
                _sensitive(await reticent.create(content, labels={"ticket": "4711"}))
        _sensitive(await log.create("sensitive"))


async def _everything(log: Log) -> None:
    """Traces, snapshots, tools, retries, changed headers, compaction, notes, and each way in which a turn ends."""
    session = await log.create("clerk", labels={"ticket": "4711", "tenant": "Åse & Co."}, cwd="/srv/orders")
    prompt, texts = clerk(("You are a clerk.", "Be brief.", *(f"Rule {number}." for number in range(10))))
    customer = ["Ada"]
    prompt.section("clerk:customer", "You speak with {{customer}}.", order=100)
    prompt.variable("customer", lambda: customer[0])
    for text, customer[0] in (("Be brief.", "Ada"), ("Be brief, please.", "Grace")):
        texts[1] = text
        rendering = await prompt.render()
        session.append(TurnStart(session.turn + 1))
        session.append(StepStart(session.turn, 1, step_trace(rendering, session.trace)))
        session.append(UserSaid(UserMessage("Why is order 4711 late? \N{SNOWMAN}")))
        session.append(snapshot(f"{text}\n\nmain, clean", "git", "gone"))
        attempt(session, header_of(rendering))
        failure = ModelFailure("overloaded", "overloaded", 529, transient=True, retry_after=1.5)
        session.append(RequestEnded(session.turn, 1, 1, "error", failure=failure))
        attempt(session, header_of(rendering), 2)
        session.append(RequestEnded(session.turn, 1, 2, "stop"))
        session.append(AssistantSaid(session.turn, 1, AssistantMessage("It waits for stock.")))
        end(session)
    take_tool_turn(session)
    session.append(Note("judged", {"by": "Åse", "score": 0.5, "of": [1, None, True]}))
    session.replace_history(0, 3, UserMessage("Before, order 4711 was asked about."))
    take_turn(session, "And 4712?", RequestHeader(CONFIG, ("Other text.",), (SEARCH, SEARCH)))
    ask(session, "And 4713?")
    session.append(RequestEnded(session.turn, 1, 1, "aborted"))
    session.append(AssistantSaid(session.turn, 1, AssistantMessage("It"), interrupted=True))
    session.append(StepEnd(session.turn, 1))
    session.append(TurnEnd(session.turn, "aborted", "user"))
    session.append(TurnStart(session.turn + 1))
    session.append(TurnEnd(session.turn, "error", "no model", "no_model"))
    await session.close()


async def _forks_and_epochs(log: Log) -> None:
    """Forks, one of them of a fork, with labels of their own or their parent's; and sessions that were resumed and
    taken over."""
    fork = await log.fork("clerk@1", id="fork")
    take_turn(fork)
    again = await fork.fork(id="fork-of-fork", labels={"ticket": "4712"})
    take_turn(again)
    await again.close()
    await fork.close()
    taken = await log.resume("fork", take_over=True)
    ask_again(taken)
    taken = await log.resume("fork", take_over=True)
    take_turn(taken)
    await taken.close()


def ask_again(session: Session) -> None:
    """A turn with the header of a new agent object, left open."""
    session.append(TurnStart(session.turn + 1))
    session.append(StepStart(session.turn, 1))
    session.append(HeaderWritten(HEADER, "resume"))
    session.append(UserSaid(UserMessage("And now?")))


async def _what_was_erased(log: Log) -> None:
    """A secret in a message, a tool's result and a section, taken out of a session and its fork."""
    session = await log.create("erased", labels={"ticket": "hunter2"})
    take_turn(session, "My password is hunter2.", RequestHeader(CONFIG, ("It is hunter2.", "Be brief."), (SEARCH,)))
    take_turn(session, "And now?")
    fork = await session.fork(id="erased-fork")
    await fork.close()
    await log.erase(match="hunter2")
    take_turn(session, "What was it?")
    await session.close()


def _sensitive(session: Session) -> None:
    """A step with something sensitive in its section, its context and its tool."""
    prompt = SystemPrompt()
    prompt.variable("code", "hunter2", sensitive=True)
    prompt.section("door", "The code is {{code}}.", order=1)
    rendering = prompt.render_sync()
    call = ToolCall("a", "unlock", '{"code": "hunter2"}')
    parts = ContextPart("door", "door: hunter2", sensitive=True), ContextPart("git", "git: main")
    session.append(TurnStart(1))
    session.append(StepStart(1, 1, step_trace(rendering)))
    session.append(
        UserSaid(UserMessage("Now.\n\ndoor: hunter2\n\ngit: main"), MessageSource(RUNTIME_CONTEXT, "foreword", parts))
    )
    attempt(session, RequestHeader.of(rendering, CONFIG))
    session.append(RequestEnded(1, 1, 1, "tool-calls"))
    session.append(AssistantSaid(1, 1, AssistantMessage("", (call,)), sensitive=(0,)))
    session.append(ToolCalled(1, 1, call, sensitive=True))
    session.append(ToolAnswered(1, 1, ToolMessage("a", "unlock", "hunter2 it is"), sensitive=True))
    session.append(StepEnd(1, 1))
    session.append(StepStart(1, 2, step_trace(rendering, session.trace)))
    attempt(session, RequestHeader.of(rendering, CONFIG))
    answer(session, "Done.")
    end(session)


async def read(log: Log) -> dict[str, Any]:
    """All that a reader gets of a log: heads, events, and the request of each attempt or the kind of error."""
    return {row.id: await _read_session(log, row.id, row.head.hex()) for row in await log.store.sessions()}


async def _read_session(log: Log, id: str, head: str) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    number, view = 1, await log.view(id)
    while number <= view.steps:
        for retry in (1, 2):
            address = f"{id}@{number}/{retry}"
            try:
                requests[f"@{number}/{retry}"] = (await rebuild(log, address)).canonical.decode()
            except ForewordError as error:
                requests[f"@{number}/{retry}"] = {"error": error.kind}
        number += 1
    events = [type(each.event).__name__ async for each in await log.events(id, if_erased="mark")]
    return {"head": head, "events": events, "requests": requests}


async def keep(path: Path) -> None:
    """Make the store of today's format, and write down what is in it."""
    await make(path)
    async with open_log(f"sqlite:{path}", read_only=True) as log:
        found = await read(log)
    path.with_suffix(".json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    anyio.run(keep, Path(sys.argv[1]))
