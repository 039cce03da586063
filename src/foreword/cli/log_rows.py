"""The rows that tell a session: a word for what happened, and beside it what was said, called, changed or paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.cli.heading import count, heading
from foreword.cli.log_events import system_digest
from foreword.cli.terminal import Piece
from foreword.cli.times import duration, moment
from foreword.cli.usage import Spent, tokens
from foreword.cli.wrapping import padded, wrapped
from foreword.explain.unstored import lost_text
from foreword.integrations.shape import SHAPE
from foreword.session import events
from foreword.session.events import RUNTIME_CONTEXT
from foreword.session.repair import REQUEST_OUTCOME_UNKNOWN
from foreword.wire.request import canonical_json
from foreword.wire.tool_extras import TOOL_EXTRAS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.log_story import Told
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.diff import Change, Diff
    from foreword.wire.chunks import ModelFailure
    from foreword.wire.request import ModelConfig

__all__ = ["Teller"]

_INDENT: Final = "  "
_LABEL: Final = 11  # cells
_MOST_ROWS: Final = 3  # of one text, unless all of it is wanted
_DIGEST: Final = 12  # digits
_ACTIONS: Final = {"added": "+", "removed": "-"}


class Teller:
    """Tells a session, event by event.

    Args:
        screen: where it is shown.
        is_full: whether long texts are told to their end.
    """

    def __init__(self, screen: Screen, *, is_full: bool = False) -> None:
        self._screen, self._is_full = screen, is_full
        self._open: Told | None = None  # a request whose outcome has not come yet
        self._turn: tuple[int, int] | None = None  # that is open: its number, and when it began
        self._counts = {"turn": 0, "step": 0, "request": 0, "tool call": 0}
        self._spent = Spent()

    def rows(self, told: Told) -> Iterator[Row]:
        """The rows of one event; none for some."""
        event = told.logged.event
        if self._open is not None and isinstance(event, (events.RequestAttempted, events.StepEnd, events.TurnEnd)):
            yield from self._perhaps_sent()
        match event:
            case events.SessionStart():
                yield from self._start(told, event)
            case events.TurnStart():
                self._turn = (event.turn, told.logged.time)
                self._counts["turn"] += 1
                yield ()
                yield (Piece(f"Turn {event.turn}", "bold"), Piece(f"  {moment(told.logged.time)}", "dim"))
            case events.TurnEnd():
                yield from self._turn_end(told, event)
            case events.StepStart():
                self._counts["step"] += 1
                yield (Piece(f"Step {told.number}", "bold"), Piece(f"  {event.step} of turn {event.turn}", "dim"))
            case events.RequestAttempted():
                self._open = told
                self._counts["request"] += 1
                yield from self._header(told)
            case events.RequestEnded():
                yield from self._ended(event)
            case _:
                yield from self._content(event)

    def end(self) -> Iterator[Row]:
        """The rows below the last event: what is open still, and what it came to."""
        if self._open is not None:
            yield from self._perhaps_sent()
        if self._turn is not None:
            why = "it is going on, or whoever wrote it died; resuming the session closes it"
            yield from self._said("open", f"turn {self._turn[0]} has no end in the log: {why}", "yellow")
        facts = [count(number, noun) for noun, number in self._counts.items() if number]
        if facts:
            yield ()
            yield from heading("Total", ", ".join([*facts, *tokens(self._spent)]), self._screen)

    # -- the session and its turns -------------------------------------------------------------------------------------

    def _start(self, told: Told, event: events.SessionStart) -> Iterator[Row]:
        if told.logged.seq:
            yield ()
        facts = [f"began {moment(told.logged.time)}", *([] if event.cwd is None else [f"in {event.cwd}"])]
        if event.parent is not None:
            facts.append(f"forked from {event.parent.session} behind its event {event.parent.events - 1}")
        yield from heading(f"Session {event.id}", ", ".join(facts), self._screen)
        for name, value in event.labels.items():
            yield from self._said("label", f"{name}={value}")

    def _turn_end(self, told: Told, event: events.TurnEnd) -> Iterator[Row]:
        began = told.logged.time if self._turn is None else self._turn[1]
        self._turn = None
        detail = f": {event.detail}" if event.detail else ""
        code = f" ({event.code})" if event.code else ""
        style = "green" if event.reason == "completed" else "red" if event.reason == "error" else "yellow"
        took = f", after {duration(told.logged.time - began)}"
        yield from self._said("end", f"{event.reason}{code}{took}{detail}", style)

    # -- requests ------------------------------------------------------------------------------------------------------

    def _header(self, told: Told) -> Iterator[Row]:
        header = told.header
        if told.reason is None or header is None:
            return
        lost = lost_text(header)
        characters = count(len(header.system), "character") if lost is None else f"{lost} characters"
        size = f"{count(len(header.sections), 'section')}, {characters}"
        whole = f"{told.reason}: {told.model}, {size}, {count(len(header.tools), 'tool')}"
        yield from self._said("prompt", whole, "cyan")
        for line in () if told.changes is None else _changes(told.changes):
            yield from self._said("", line, "cyan")

    def _ended(self, event: events.RequestEnded) -> Iterator[Row]:
        told, self._open = self._open, None
        self._spent = self._spent.plus(event.usage)
        failed = event.failure is not None
        took = [] if event.timings is None else [duration(event.timings.total)]
        facts = ", ".join([*self._asked(told), *tokens(Spent().plus(event.usage)), *took])
        outcome = _failure(event.failure) if event.failure is not None else event.finish
        if event.failure is not None and event.failure.code == REQUEST_OUTCOME_UNKNOWN:
            outcome = "perhaps sent: nobody knows what came of it"
        yield from self._said(f"request {event.attempt}", f"{outcome}; {facts}", "red" if failed else "")

    def _perhaps_sent(self) -> Iterator[Row]:
        told, self._open = self._open, None
        event = None if told is None else told.logged.event
        number = event.attempt if isinstance(event, events.RequestAttempted) else 0
        facts = ", ".join(self._asked(told))
        yield from self._said(f"request {number}", f"perhaps sent: it has no outcome yet; {facts}", "yellow")

    def _asked(self, told: Told | None) -> list[str]:
        if told is None or told.header is None:
            return []
        tools = count(len(told.header.tools), "tool")
        system = lost_text(told.header) or system_digest(told.header)[:_DIGEST]
        return [f"system {system}", tools, count(told.messages, "message")]

    # -- the rest ------------------------------------------------------------------------------------------------------

    def _content(self, event: events.Event) -> Iterator[Row]:
        match event:
            case events.UserSaid():
                yield from self._user(event)
            case events.AssistantSaid():
                label = "cut off" if event.interrupted else "assistant"
                yield from self._said(label, event.message.text) if event.message.text else ()
            case events.ToolCalled():
                self._counts["tool call"] += 1
                yield from self._said("call", f"{event.call.name} {event.call.arguments}")
            case events.ToolAnswered():
                message, code = event.message, "" if event.code is None else f"{event.code}: "
                yield from self._said("result", f"{code}{message.text}", "red" if message.is_error else "")
            case events.HistoryReplaced():
                what = f"messages {event.first + 1} to {event.last + 1} of the history gave way to"
                yield from self._said("compacted", f"{what}: {event.message.text}", "yellow")
            case events.ContentErased():
                yield from self._said("erased", f"{count(len(event.blobs), 'content')} emptied on purpose", "yellow")
            case events.Note(name=name) if name in (SHAPE, TOOL_EXTRAS):
                return  # how a recorded body was written, and what its tools carried; other commands tell of them
            case events.Note():
                yield from self._said("note", f"{event.name} {canonical_json(event.data).decode()}")
            case events.UnknownEvent():
                yield from self._said("unknown", f"{event.type}, an event of a newer version")
            case _:
                return

    def _user(self, event: events.UserSaid) -> Iterator[Row]:
        source = event.source
        if source is None:
            yield from self._said("user", event.message.text)
        elif source.kind == RUNTIME_CONTEXT:
            yield from self._said("facts", "\n".join(part.text for part in source.parts) or event.message.text)
        else:
            yield from self._said("told", f"by {source.name} ({source.kind}): {event.message.text}")

    def _said(self, label: str, text: str, style: str = "") -> Iterator[Row]:
        """A label, and beside it a text in as many rows as it may have."""
        screen = self._screen
        width = max(screen.width - len(_INDENT) - _LABEL, 16)
        lines = screen.shown(text).replace("\t", "    ").split("\n")
        rows = [row for line in lines for row in wrapped(line, width)]
        kept = rows if self._is_full or len(rows) <= _MOST_ROWS else rows[: _MOST_ROWS - 1]
        for row in kept:
            yield (Piece(_INDENT + padded(label, _LABEL), "dim"), Piece(row, style))
            label = ""
        if len(kept) < len(rows):
            cut = screen.shown(f"… {count(len(text), 'character')} in all")
            yield (Piece(_INDENT + padded("", _LABEL)), Piece(cut, "dim"))


def _failure(failure: ModelFailure) -> str:
    status = "" if failure.status is None else f", HTTP {failure.status}"
    return f"failed ({failure.code}{status}): {failure.message}"


# -- what changed ------------------------------------------------------------------------------------------------------


def _changes(diff: Diff) -> Iterator[str]:
    if diff.config is not None:
        yield f"model {_config(diff.config[0])} → {_config(diff.config[1])}"
    for change in (*diff.sections, *diff.tools):
        yield _change(change)


def _change(change: Change) -> str:
    mark = _ACTIONS.get(change.action, "~")
    how = "" if change.action in _ACTIONS else f", {change.action}"
    before = "" if change.old_owner is None else f", before of {change.old_owner}"
    return f"{mark} {change.kind} {change.name} of {change.owner}{how}{before}"


def _config(config: ModelConfig | None) -> str:
    if config is None:
        return "none"
    settings = canonical_json(config.to_json()["settings"]).decode() if config.settings else ""
    return f"{config} {settings}".rstrip()
