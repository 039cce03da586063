"""Messages in Anthropic's format: turns that alternate, made of blocks, each of which says something.

The format is stricter than a history: two messages of the user in a row are one turn, the results of tools come first
in it, no text may be blank, a call's arguments are an object, and its id has few characters and is its own. What was
said otherwise is spelled so that the request is accepted; the log keeps it as it was. How a message is spelled depends
on those before it only, so that a longer history begins with the shorter one.
"""

from __future__ import annotations

import json
import re
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, cast

from foreword.jsonvalue import MAX_DEPTH
from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import canonical_json
from foreword.wire.tool_names import cleaned_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Turns", "text_block"]

Block: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["user", "assistant"]

_ID: Final = re.compile("[a-zA-Z0-9_-]+")
_LONGEST_NAME: Final = 128
_NO_JSON: Final = "INVALID_JSON"  # the key that the vendor's documentation gives as an example for such arguments
_SILENT_ERROR: Final = "The tool failed without a word."
_SILENT_USER: Final = "(an empty message)"


class Turns:
    """The turns of a request.

    Attributes:
        told: what stands in the body's ``messages``.
        own: of these, the turns that were made here.
    """

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.own: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None  # the last turn, if a message can be added to it
        self._ids = _Ids()

    def add(self, message: Message) -> None:
        """Add a message; if it says nothing at all, it is left out.

        Unless it is the user's, and without it there would be no turn of the user: the format begins with one, and an
        answer follows one. A model would go on with its own words otherwise.
        """
        blocks = list(_blocks(message, self._ids))
        if not blocks:
            if not isinstance(message, UserMessage) or not self._lacks_user():
                return
            blocks = [text_block(_SILENT_USER)]
        role: Role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if self._open is None or self._open["role"] != role:
            self._open = {"role": role, "content": []}
            self.told.append(self._open)
            self.own.append(self._open)
        content = [*self._open["content"], *blocks]
        self._open["content"] = sorted(content, key=_is_no_result) if role == "user" else content

    def add_foreign(self, message: Any) -> None:
        """Add a turn that somebody else has made."""
        self.told.append(message)
        self._open = None

    def _lacks_user(self) -> bool:
        """Whether a turn of the user is due; after what somebody else has made, nobody knows."""
        return not self.told if self._open is None else self._open["role"] == "assistant"


class _Ids:
    """The ids of calls as the format takes them: each but once, though some servers count anew in every answer."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}  # how often an id was asked for; those given are among its keys
        self._latest: dict[str, str] = {}
        self._waiting: dict[str, deque[str]] = {}  # the calls of the last answer that have no result yet

    def begin(self) -> None:
        """Begin with another answer; the results that follow are those of its calls."""
        self._waiting.clear()

    def of_call(self, given: str) -> str:
        """The id of a call: the given one as far as possible."""
        plain = made = _id(given)
        while made in self._times:
            self._times[plain] += 1
            made = f"{plain}_{self._times[plain]}"
        self._times[made] = 1
        self._latest[given] = made
        self._waiting.setdefault(given, deque()).append(made)
        return made

    def of_result(self, given: str) -> str:
        """The id of the call that a result belongs to; of several with the same id, the first without one."""
        waiting = self._waiting.get(given)
        return waiting.popleft() if waiting else self._latest.get(given) or _id(given)


def text_block(text: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": text}


def _is_no_result(block: Block) -> bool:
    return "tool_use_id" not in block


def _blocks(message: Message, ids: _Ids) -> Iterator[Block]:
    match message:
        case ToolMessage():
            yield _result(message, ids.of_result(message.call_id))
        case UserMessage(text):
            if text.strip():
                yield text_block(text)
        case AssistantMessage(text, calls):
            if text.strip():
                yield text_block(text)
            ids.begin()
            for call in calls:
                yield _call(call, ids.of_call(call.id))


def _result(message: ToolMessage, call_id: str) -> Block:
    made: Block = {"type": "tool_result", "tool_use_id": call_id}
    if message.text.strip():
        made["content"] = message.text
    elif message.is_error:
        made["content"] = _SILENT_ERROR
    if message.is_error:
        made["is_error"] = True
    return made


def _call(call: ToolCall, call_id: str) -> Block:
    name = cleaned_name(call.name, _LONGEST_NAME)
    return {"type": "tool_use", "id": call_id, "name": name, "input": _input(call.arguments)}


def _id(given: str) -> str:
    """An id as the format takes it; one of another provider may have characters that it does not."""
    return given if _ID.fullmatch(given) else f"call_{blake2b(given.encode(), digest_size=12).hexdigest()}"


def _input(arguments: str) -> dict[str, Any]:
    """The arguments of a call as an object. What is none is handed back to the model under a key that says so."""
    if not arguments.strip():
        return {}
    try:
        value: dict[str, Any] = json.loads(arguments, parse_constant=_refuse)
        if type(value) is dict and _is_flat(value, MAX_DEPTH):
            canonical_json(value)  # halves of characters, and numbers too large for a float, go no further
            return value
    except (ValueError, RecursionError):
        pass  # the model wrote something else; it will see what
    return {_NO_JSON: arguments}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _is_flat(value: object, depth: int) -> bool:
    """Whether a value is nested so little that it can be written into a larger one."""
    if not isinstance(value, dict | list):
        return True
    members = cast("Iterable[object]", value.values() if isinstance(value, dict) else value)
    return depth > 0 and all(_is_flat(each, depth - 1) for each in members)
