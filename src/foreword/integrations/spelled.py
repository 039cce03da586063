"""What JSON can say and a log does not hold, spelled out: numbers that readers round, and what is nested too deep.

    spelled({"seed": 2**60})            # {"seed": {"$json": "1152921504606846976"}}

Others send such things, and to leave them out or to round them would make the log untrue. So the JSON itself stands
there as a text, in an object that says so; `unspelled` gives back the value, and with it the bytes that were sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.errors import NotJsonError
from foreword.jsonvalue import MAX_DEPTH, freeze

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["spelled", "unspelled"]

_KEY: Final = "$json"
_DEEPEST: Final = MAX_DEPTH - 8  # a value stands in a note, and there some levels down


def spelled(value: Any, depth: int = 0) -> Any:
    """A JSON value as a log can hold it.

    Args:
        value: as a reader of JSON gives it.
        depth: how deep it stands in the whole.
    """
    if isinstance(value, (int, float)):
        return value if _is_held(value) else _text(value)
    if not isinstance(value, (dict, list)):
        return value
    if depth == _DEEPEST:
        return _text(cast("Any", value))
    if isinstance(value, list):
        return [spelled(each, depth + 1) for each in cast("Sequence[Any]", value)]
    fields = cast("dict[str, Any]", value)
    if _spelling(fields) is not None:  # somebody's own object that looks like one of ours
        return _text(fields)
    return {key: spelled(each, depth + 1) for key, each in fields.items()}


def unspelled(value: Any) -> Any:
    """The value that was given to `spelled`."""
    if isinstance(value, list):
        return [unspelled(each) for each in cast("Sequence[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    text = _spelling(fields)
    if text is not None:
        return json.loads(text)
    return {key: unspelled(each) for key, each in fields.items()}


def _is_held(number: float) -> bool:
    try:
        freeze(number)
    except NotJsonError:
        return False
    return True


def _text(value: Any) -> dict[str, str]:
    return {_KEY: json.dumps(value, ensure_ascii=False, separators=(",", ":"))}


def _spelling(fields: dict[str, Any]) -> str | None:
    """The text of an object that spells a value out; None for any other object."""
    text = fields.get(_KEY) if len(fields) == 1 else None
    return text if isinstance(text, str) else None
