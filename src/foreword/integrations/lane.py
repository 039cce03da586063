"""One session that is being recorded: which events a request and its answer become.

A recorded agent keeps its history itself and sends all of it each time. So each request is held against what the log
has: what is new is appended, and where something else stands now, it is replaced, so that the log's history is what was
sent. A turn ends with an answer that calls no tool, a step with the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foreword.errors import EventRefusedError
from foreword.integrations.missed import MISSED, Missed
from foreword.integrations.sections import Namer, pieces_of
from foreword.integrations.shape import SHAPE, Shape, leaves
from foreword.integrations.told import Heard
from foreword.prompt.assembly import AssembledSection, PromptAssembly
from foreword.prompt.origin import Origin
from foreword.prompt.rendering import render
from foreword.session.events import (
    AssistantSaid,
    HeaderWritten,
    HistoryReplaced,
    Note,
    RequestAttempted,
    RequestEnded,
    StepEnd,
    StepStart,
    Timings,
    ToolAnswered,
    TurnEnd,
    TurnEndReason,
    TurnStart,
    UserSaid,
)
from foreword.session.header import RequestHeader
from foreword.session.trace import step_trace
from foreword.wire.chunks import Finish, ModelFailure
from foreword.wire.messages import AssistantMessage, ToolMessage, UserMessage
from foreword.wire.request import canonical_json
from foreword.wire.tool_extras import TOOL_EXTRAS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.integrations.told import Answered, Sent, Told
    from foreword.jsonvalue import JsonValue
    from foreword.session.session import Session
    from foreword.session.trace import StepTrace
    from foreword.wire.messages import Message

__all__ = ["Lane"]

_ENDINGS: Final[Mapping[str, TurnEndReason]] = {"max-tokens": "max-tokens", "aborted": "aborted"}
_ABORTED: Final = Finish("aborted")
_NO_MESSAGE: Final = UserMessage("")  # in the place of a history of which nothing was sent: something must stand there
_NO_ANSWER: Final = Finish("error", failure=ModelFailure("no answer came", "connection", transient=True))


class Lane:
    """A session, and the request in it that is under way.

    Attributes:
        session: the session.
        attempt: the attempt that is open, counted over the lane's life; None if none is.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.attempt: int | None = None
        self._attempts = 0
        self._number = 0  # of the attempt in its step
        self._body: bytes | None = None  # the digest of the last body
        self._names = Namer()
        self._resumed = session.header is not None
        self._shape: Shape | None = None  # of the last body
        self._extras = b"" if self._resumed else b"[]"  # what the tools carried beside their schemas, as it was noted
        self._failed = False  # how the last attempt ended

    def begin(self, sent: Sent, missed: Missed) -> int:
        """Log a request that is about to be sent.

        Args:
            sent: the request.
            missed: what requests before it are not in the log, which is told now.

        Returns:
            The attempt, for `end`.

        Raises:
            EventRefusedError: the log cannot hold it.
        """
        session = self.session
        self._give_up_attempt(_NO_ANSWER)
        body = session.body_digest(sent.body.adapter, sent.body.version, sent.body.content)
        is_retry = sent.retry and session.step_open and self._body == body.digest
        if not is_retry:
            self._enter_step(sent)
        told = missed.told()
        if told is not None:
            session.append(Note(MISSED, told))
            missed.forget(told)
        self._number = self._number + 1 if is_retry else 1
        session.append(RequestAttempted(session.turn, session.step, self._number, body))
        self._body, self._attempts = body.digest, self._attempts + 1
        self.attempt = self._attempts
        return self._attempts

    def end(self, attempt: int, answered: Answered) -> bool:
        """Log how an attempt ended; False if it was given up meanwhile."""
        if attempt != self.attempt:
            return False
        self._log_outcome(answered.finish, _timings(answered))
        message = answered.message
        if answered.finish.failure is not None or message is None:
            return True
        session, kind = self.session, answered.finish.kind
        session.append(AssistantSaid(session.turn, session.step, message, interrupted=kind == "aborted"))
        if not message.tool_calls:
            self.finish(_ENDINGS.get(kind, "completed"))
        return True

    def finish(self, reason: TurnEndReason | None = None) -> None:
        """The turn is over, if one is open. Without a reason it ended as its last request did."""
        self._give_up_attempt(_ABORTED if reason == "aborted" else _NO_ANSWER)
        session = self.session
        if session.step_open:
            session.append(StepEnd(session.turn, session.step))
        if session.turn_open:
            session.append(TurnEnd(session.turn, reason or ("error" if self._failed else "completed")))

    def common(self, told: Told) -> int:
        """With how many messages of this session's history a request begins."""
        return _common(self.session.messages, [heard.message for heard in told.history])

    # -- a step --------------------------------------------------------------------------------------------------------

    def _enter_step(self, sent: Sent) -> None:
        session, told = self.session, sent.told
        history = told.history
        if told.continues:
            history = (*_as_heard(session.messages), *history)
        self._answer_calls(history)
        if session.step_open:
            session.append(StepEnd(session.turn, session.step))
        if not session.turn_open:
            session.append(TurnStart(session.turn + 1))
        header, trace = self._head_of(sent)
        session.append(StepStart(session.turn, session.step + 1, trace))
        before = len(leaves(session.messages)) if told.continues else 0
        self._bring(history)
        self._note_shape(told, before)
        self._note_extras(told)
        self._write_header(header)

    def _head_of(self, sent: Sent) -> tuple[RequestHeader, StepTrace]:
        """The header of a request, and whose each part of it is."""
        told, whose = sent.told, sent.credits
        named = self._names.name(pieces_of(told.instructions, whose))
        sections = [AssembledSection(each.name, each.text, Origin(each.owner), verbatim=True) for each in named]
        rendering = render(PromptAssembly(sections, tools=told.tools))
        owners = [Origin(whose.tools.get(tool.name, whose.owner)) for tool in told.tools]
        trace = step_trace(rendering, self.session.trace, tool_origins=owners)
        return RequestHeader.of(rendering, sent.config), trace

    def _write_header(self, header: RequestHeader) -> None:
        session, resumed = self.session, self._resumed
        self._resumed = False
        if session.header is None:
            session.append(HeaderWritten(header, "initial"))
        elif resumed:
            session.append(HeaderWritten(header, "resume"))
        elif session.header != header:
            session.append(HeaderWritten(header, "change"))

    def _note_shape(self, told: Told, start: int) -> None:
        if told.shape is None:
            return
        last, self._shape = self._shape, replace(told.shape, start=start)
        self.session.append(Note(SHAPE, self._shape.to_json(last)))

    def _note_extras(self, told: Told) -> None:
        extras: list[JsonValue] = [dict(each) for each in told.tool_extras] if any(told.tool_extras) else []
        written = canonical_json(extras)
        if written != self._extras:
            self._extras = written
            self.session.append(Note(TOOL_EXTRAS, extras))

    # -- the history ---------------------------------------------------------------------------------------------------

    def _answer_calls(self, history: Sequence[Heard]) -> None:
        """Log what tools answered while the step that called them is still open."""
        session = self.session
        known = session.messages
        if not session.step_open or len(history) <= len(known) or not known:
            return
        asked, echoed = known[-1], history[len(known) - 1].message
        if not isinstance(asked, AssistantMessage) or _ids(asked) != _ids(echoed):
            return
        for heard in history[len(known) :]:
            if not isinstance(heard.message, ToolMessage) or not self._accepts(heard.message):
                return

    def _bring(self, history: Sequence[Heard]) -> None:
        """Make the session's history this one."""
        known = self.session.messages
        wanted = [heard.message for heard in history]
        if known and not wanted:
            wanted = [_NO_MESSAGE]
        same = _common(known, wanted)
        if same < len(known):
            same = self._replace(same, wanted)
        for heard in history[same:]:
            self._say(heard)

    def _replace(self, same: int, wanted: Sequence[Message]) -> int:
        """Put a message in the place of all that is no longer so; gives how many are right then.

        Calls and their answers cannot be parted: then it begins where the calls are.
        """
        last = len(self.session.messages) - 1
        for first in range(min(same, len(wanted) - 1), -1, -1):
            try:
                self.session.append(HistoryReplaced(first, last, wanted[first]))
            except EventRefusedError:
                if first == 0:
                    raise
            else:
                return first + 1
        raise AssertionError("a history is replaced by one that has messages")  # see `_bring`

    def _say(self, heard: Heard) -> None:
        session, message = self.session, heard.message
        match message:
            case UserMessage():
                session.append(UserSaid(message, heard.source))
            case AssistantMessage() if message.text or message.tool_calls:
                session.append(AssistantSaid(session.turn, session.step, message))
            case ToolMessage() if self._accepts(message):
                pass
            case _:  # an empty answer, or one to a call that nobody made: it was sent all the same
                session.append(UserSaid(UserMessage("")))
                at = len(session.messages) - 1
                session.append(HistoryReplaced(at, at, message))

    def _accepts(self, message: ToolMessage) -> bool:
        """Log what a tool answered, if the model has asked for it."""
        try:
            self.session.append(ToolAnswered(self.session.turn, self.session.step, message))
        except EventRefusedError:
            return False
        return True

    # -- how an attempt ended ------------------------------------------------------------------------------------------

    def _give_up_attempt(self, finish: Finish) -> None:
        """Of an attempt that never had an answer: nobody will tell any more."""
        if self.session.attempt_open:
            self._log_outcome(finish, None)

    def _log_outcome(self, finish: Finish, timings: Timings | None) -> None:
        session = self.session
        session.append(
            RequestEnded(session.turn, session.step, self._number, finish.kind, finish.usage, finish.failure, timings)
        )
        self.attempt, self._failed = None, finish.failure is not None


def _timings(answered: Answered) -> Timings | None:
    return None if answered.milliseconds is None else Timings(answered.milliseconds, answered.first)


def _ids(message: Message) -> list[str]:
    return [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []


def _common(one: Sequence[Message], other: Sequence[Message]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def _as_heard(messages: Sequence[Message]) -> list[Heard]:
    return [Heard(message) for message in messages]
