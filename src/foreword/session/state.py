"""Where a session is: what follows from its events, and which event may come next.

The state is a fold over the records, so a live session and one read back from a store are in the same. It knows
messages by their digests only: a log of any length folds in the memory of its history.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import msgspec

from foreword.session import records
from foreword.session.digests import EMPTY_HISTORY, history_digest, request_digest
from foreword.session.events import RUNTIME_CONTEXT

__all__ = ["HistoryItem", "PendingCall", "Seen", "State", "Traced"]

Refs: TypeAlias = Mapping[str, bytes]


class HistoryItem(msgspec.Struct, frozen=True, gc=False):
    """A message in the history."""

    seq: int  # of the event that brought it
    digest: bytes  # of its blob
    role: str
    calls: tuple[str, ...] = ()  # of an assistant message, the ids that it calls; of a tool message, the one it answers
    names: tuple[str, ...] = ()  # of those tools, as far as known
    failed: bool = False  # of a tool message, whether it tells an error that has a code


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model sees in a state: messages and header, by their digests."""

    history: tuple[HistoryItem, ...]
    header: bytes | None
    header_seq: int  # the event that wrote it
    held: int | None  # the event of the snapshot of runtime contexts that it sees
    erased: frozenset[bytes] = frozenset()  # of which it sees placeholders
    header_withheld: bool = False  # whether something in the header was not stored
    # Of messages that were not stored, how they read masked.
    masked: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])


class Traced(msgspec.Struct, frozen=True, gc=False):
    """What explains a step."""

    seq: int  # of its step/start
    digest: bytes  # the root of its trace
    resized: tuple[records.Resized, ...]  # what differs from that


@dataclass(slots=True)
class PendingCall:
    """A tool call that has no answer yet."""

    id: str
    name: str
    message: bytes  # the digest of the answer that holds it
    position: int  # in that answer
    started: bool = False


class State:
    """What follows from the events so far. `refusal` says what is wrong with a next one, `apply` takes it in."""

    __slots__ = (
        "_request",
        "attempt",
        "attempt_open",
        "count",
        "cwd",
        "erased",
        "header",
        "header_seq",
        "header_trace",
        "header_withheld",
        "held",
        "history",
        "history_digest",
        "label_seq",
        "labels",
        "masked",
        "pending",
        "step",
        "step_open",
        "steps",
        "time",
        "told_contexts",
        "trace",
        "turn",
        "turn_open",
        "turn_start",
        "withheld",
    )

    def __init__(self) -> None:
        self.count = 0  # of events, so the number of the next
        self.time = 0  # of the last event
        self.cwd: str | None = None
        self.labels: dict[str, bytes] = {}  # digests of their values
        self.label_seq = 0  # the event that gave them
        self.turn = 0  # the last that began
        self.turn_open = False
        self.turn_start = 0  # the event that began it
        self.step = 0  # the last that began in it
        self.step_open = False
        self.steps = 0  # begun in all turns
        self.attempt = 0  # the last in it
        self.attempt_open = False
        self.pending: list[PendingCall] = []
        self.header: bytes | None = None  # the digest of the one in force
        self.header_seq = 0  # the event that wrote it
        self.header_withheld = False  # whether something in it was not stored
        self.trace: Traced | None = None  # what explains the last step that began
        self.header_trace: Traced | None = None  # what explains the step that wrote it
        self.history: list[HistoryItem] = []
        self.history_digest = EMPTY_HISTORY
        self._request: tuple[bytes, bytes, bytes] | None = None  # the last that was asked for
        self.held: int | None = None  # the event of the newest snapshot that is still in the history
        self.told_contexts = False  # whether there ever was a snapshot
        self.erased: dict[bytes, int] = {}  # what was erased, and the last event that says so
        self.withheld: set[bytes] = set()  # what was not stored
        self.masked: dict[bytes, bytes] = {}  # of messages that were not stored, how they read masked

    def refusal(self, data: records.Data) -> str | None:
        """Why an event cannot come next; None if it can. Changes nothing."""
        if self.count == 0 and not isinstance(data, records.SessionStartData):
            return "a session begins with session/start"
        return _RULES[type(data)].refusal(self, data)

    def apply(self, seq: int, time: int, data: records.Data, refs: Refs, withheld: Collection[str] = ()) -> None:
        """Take in an event that was not refused; ``withheld`` are the roles of refs whose content was not stored."""
        _RULES[type(data)].apply(self, seq, data, refs)
        if withheld:
            self._withhold(refs, withheld)
        self.count = seq + 1
        self.time = time

    def seen(self) -> Seen:
        """What the model sees now."""
        masked = {item.digest: self.masked[item.digest] for item in self.history if item.digest in self.masked}
        history = tuple(self.history)
        return Seen(history, self.header, self.header_seq, self.held, self._unseen(), self.header_withheld, masked)

    @property
    def request(self) -> tuple[bytes, bytes, bytes] | None:
        """The digests of header, history and request as they are now; None before the first header."""
        header, history, made = self.header, self.history_digest, self._request
        if header is not None and (made is None or made[0] is not header or made[1] is not history):
            made = self._request = header, history, request_digest(header, history)
        return made

    def _withhold(self, refs: Refs, roles: Collection[str]) -> None:
        self.header_withheld = self.header_withheld or "header" in roles
        self.withheld.update(digest for role, digest in refs.items() if role in roles and role not in records.TREES)
        if "masked" in refs and "message" in refs:
            self.masked[refs["message"]] = refs["masked"]

    def _unseen(self) -> frozenset[bytes]:
        """What was erased, of which the model sees placeholders.

        A message is gone for good. A shared text was there again if the header was written anew since.
        """
        if not self.erased:
            return frozenset()
        texts = {digest for digest, seq in self.erased.items() if seq > self.header_seq}
        return frozenset(texts.union(item.digest for item in self.history if item.digest in self.erased))

    # -- history -------------------------------------------------------------------------------------------------------

    def join(self, item: HistoryItem) -> None:
        """Let a message join the history."""
        self.history.append(item)
        self.history_digest = history_digest(self.history_digest, item.digest)

    def replace(self, first: int, last: int, item: HistoryItem) -> None:
        """Put a message in the place of a stretch of the history."""
        if any(gone.seq == self.held for gone in self.history[first : last + 1]):
            self.held = None
        self.history[first : last + 1] = [item]
        digest = EMPTY_HISTORY
        for each in self.history:
            digest = history_digest(digest, each.digest)
        self.history_digest = digest

    def torn_pair(self, first: int, last: int, calls: Sequence[str]) -> str | None:
        """A tool call that a replaced stretch would part from its answer; None if there is none.

        Args:
            first: the first position of the stretch.
            last: the last one.
            calls: the ids that the message which takes its place calls or answers.
        """
        for pending in self.pending:
            if any(each.digest == pending.message for each in self.history[first : last + 1]):
                return pending.id
        asked: dict[str, int] = {}
        for position, item in enumerate(self.history):
            if item.role == "assistant":
                asked.update(dict.fromkeys(item.calls, position))
            elif item.role == "tool":
                call = item.calls[0]
                inside = [first <= each <= last for each in (asked.get(call, position), position)]
                if inside[0] != inside[1] and call not in calls:
                    return call
        return None


# -- what each event needs, and what it does ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """How the state treats one type of event."""

    refusal: Callable[[State, Any], str | None]
    apply: Callable[[State, int, Any, Refs], None]


def _refuse_nothing(state: State, data: object) -> str | None:
    return None


def _do_nothing(state: State, seq: int, data: object, refs: Refs) -> None:
    pass


def _session_start(state: State, data: records.SessionStartData) -> str | None:
    parent = data.parent
    if parent is None:
        return None if state.count == 0 else "a session begins once"
    if parent.events != state.count:
        return f"it starts a fork behind {parent.events} events, and there are {state.count}"
    return "a session is forked at a closed turn" if state.turn_open else None


def _start_session(state: State, seq: int, data: records.SessionStartData, refs: Refs) -> None:
    state.cwd, state.label_seq = data.cwd, seq
    state.labels = {role.removeprefix("label/"): digest for role, digest in refs.items()}


def _turn_start(state: State, data: records.TurnStartData) -> str | None:
    if state.turn_open:
        return f"turn {state.turn} is still open; end it first"
    return None if data.turn == state.turn + 1 else f"the next turn is {state.turn + 1}"


def _start_turn(state: State, seq: int, data: records.TurnStartData, refs: Refs) -> None:
    state.turn, state.turn_open, state.turn_start, state.step = data.turn, True, seq, 0


def _turn_end(state: State, data: records.TurnEndData) -> str | None:
    if not state.turn_open or data.turn != state.turn:
        return f"turn {data.turn} is not open"
    return f"step {state.step} is still open; end it first" if state.step_open else None


def _end_turn(state: State, seq: int, data: records.TurnEndData, refs: Refs) -> None:
    state.turn_open = False


def _step_start(state: State, data: records.StepStartData) -> str | None:
    if not state.turn_open or data.turn != state.turn:
        return f"turn {data.turn} is not open"
    if state.step_open:
        return f"step {state.step} is still open; end it first"
    return None if data.step == state.step + 1 else f"the next step of turn {state.turn} is {state.step + 1}"


def _start_step(state: State, seq: int, data: records.StepStartData, refs: Refs) -> None:
    state.step, state.step_open, state.attempt, state.pending = data.step, True, 0, []
    state.steps += 1
    state.trace = Traced(seq, refs["trace"], data.resized) if "trace" in refs else None


def _in_step(state: State, data: Any) -> str | None:
    open_now = state.step_open and data.step == state.step and data.turn == state.turn
    return None if open_now else f"step {data.step} of turn {data.turn} is not open"


def _step_end(state: State, data: records.StepEndData) -> str | None:
    still_open = f"attempt {state.attempt} has no outcome; log how it ended first" if state.attempt_open else None
    return _in_step(state, data) or still_open


def _end_step(state: State, seq: int, data: records.StepEndData, refs: Refs) -> None:
    state.step_open, state.pending = False, []


def _say_user(state: State, seq: int, data: records.UserMessageData, refs: Refs) -> None:
    state.join(HistoryItem(seq, refs["message"], "user"))
    if data.source is not None and data.source.kind == RUNTIME_CONTEXT:
        state.held, state.told_contexts = seq, True


def _say_assistant(state: State, seq: int, data: records.AssistantMessageData, refs: Refs) -> None:
    message = refs["message"]
    state.pending = [PendingCall(*call, message, at) for at, call in enumerate(data.calls)]
    if not data.empty:
        ids, names = zip(*data.calls, strict=True) if data.calls else ((), ())
        state.join(HistoryItem(seq, message, "assistant", ids, names))


def _pending(state: State, id: str, *, unstarted: bool = False) -> PendingCall | None:
    """The call of an id that is to be answered next; one that runs goes before one that does not."""
    fitting = [call for call in state.pending if call.id == id and not (unstarted and call.started)]
    return min(fitting, key=lambda call: not call.started, default=None)


def _tool_call(state: State, data: records.ToolCallData) -> str | None:
    refused = _in_step(state, data)
    if refused is None and _pending(state, data.id, unstarted=True) is None:
        return f'the model asked for no call "{data.id}" that has not begun yet'
    return refused


def _call_tool(state: State, seq: int, data: records.ToolCallData, refs: Refs) -> None:
    cast("PendingCall", _pending(state, data.id, unstarted=True)).started = True


def _tool_result(state: State, data: records.ToolResultData) -> str | None:
    refused = _in_step(state, data)
    if refused is None and _pending(state, data.id) is None:
        return f'the model asked for no call "{data.id}" that is without an answer'
    return refused


def _answer_tool(state: State, seq: int, data: records.ToolResultData, refs: Refs) -> None:
    call = cast("PendingCall", _pending(state, data.id))
    state.pending.remove(call)
    state.join(HistoryItem(seq, refs["message"], "tool", (call.id,), (call.name,), data.code is not None))


def _history_replaced(state: State, data: records.HistoryReplacedData) -> str | None:
    length = len(state.history)
    if not data.first <= data.last < length:
        return f"the history has {length} messages, and no stretch from {data.first} to {data.last}"
    torn = state.torn_pair(data.first, data.last, data.calls)
    return None if torn is None else f'it would part tool call "{torn}" from its answer; replace both or neither'


def _replace_history(state: State, seq: int, data: records.HistoryReplacedData, refs: Refs) -> None:
    state.replace(data.first, data.last, HistoryItem(seq, refs["message"], data.role, data.calls))


def _request_header(state: State, data: records.RequestHeaderData) -> str | None:
    if not state.step_open:
        return "no step is open"
    if (data.reason == "initial") != (state.header is None):
        return 'the first header of a session is "initial", and no other'
    return None


def _write_header(state: State, seq: int, data: records.RequestHeaderData, refs: Refs) -> None:
    state.header, state.header_seq, state.header_withheld = refs["header"], seq, False
    state.header_trace = state.trace


def _request_attempt(state: State, data: records.RequestAttemptData) -> str | None:
    refused = _in_step(state, data)
    if refused is not None:
        return refused
    if state.attempt_open:
        return f"attempt {state.attempt} has no outcome; log how it ended first"
    if data.attempt != state.attempt + 1:
        return f"the next attempt of the step is {state.attempt + 1}"
    asked = state.request
    if asked is None:
        return "no header was written; write it first"
    agrees = (data.header, data.history, data.request) == tuple(map(bytes.hex, asked))
    return None if agrees else "it is not the request that follows from the header and the history here"


def _attempt_request(state: State, seq: int, data: records.RequestAttemptData, refs: Refs) -> None:
    state.attempt, state.attempt_open = data.attempt, True


def _request_outcome(state: State, data: records.RequestOutcomeData) -> str | None:
    refused = _in_step(state, data)
    if refused is None and not (state.attempt_open and data.attempt == state.attempt):
        return f"attempt {data.attempt} is not open"
    return refused


def _end_request(state: State, seq: int, data: records.RequestOutcomeData, refs: Refs) -> None:
    state.attempt_open = False


def _erase(state: State, seq: int, data: records.ContentErasedData, refs: Refs) -> None:
    state.erased.update(dict.fromkeys(map(bytes.fromhex, data.blobs), seq))


_RULES: Final[dict[type[records.Data], Rule]] = {
    records.SessionStartData: Rule(_session_start, _start_session),
    records.TurnStartData: Rule(_turn_start, _start_turn),
    records.TurnEndData: Rule(_turn_end, _end_turn),
    records.StepStartData: Rule(_step_start, _start_step),
    records.StepEndData: Rule(_step_end, _end_step),
    records.UserMessageData: Rule(_refuse_nothing, _say_user),
    records.AssistantMessageData: Rule(_in_step, _say_assistant),
    records.ToolCallData: Rule(_tool_call, _call_tool),
    records.ToolResultData: Rule(_tool_result, _answer_tool),
    records.HistoryReplacedData: Rule(_history_replaced, _replace_history),
    records.RequestHeaderData: Rule(_request_header, _write_header),
    records.RequestAttemptData: Rule(_request_attempt, _attempt_request),
    records.RequestOutcomeData: Rule(_request_outcome, _end_request),
    records.ContentErasedData: Rule(_refuse_nothing, _erase),
    records.NoteData: Rule(_refuse_nothing, _do_nothing),
    records.Unknown: Rule(_refuse_nothing, _do_nothing),
}
