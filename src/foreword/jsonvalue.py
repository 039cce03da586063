"""What JSON is here, said once and checked at the entrance.

A JSON value is a dict with string keys, a list, a string without lone surrogates, an int within ±(2^53 − 1), a finite
float other than −0.0, a bool or None, nested at most 64 deep. What is narrower than the RFC is so because a log must
give back the same bytes that a provider was sent: −0.0, huge ints and lone surrogates do not survive that way.

`freeze` checks and detaches in one walk: the result shares nothing with what was handed over, cannot be changed in
place, keeps the order of keys, equals plain dicts and lists, and goes through `json.dumps` as it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from foreword.errors import NotJsonError, with_article

if TYPE_CHECKING:
    from typing import Self

__all__ = ["MAX_DEPTH", "MAX_INTEGER", "FrozenDict", "FrozenList", "JsonValue", "freeze", "thaw"]

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1  # the largest int that every JSON reader keeps exactly (RFC 8259, section 6)


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("a frozen JSON value cannot be changed in place; change a copy: foreword.thaw(value)")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed in place. Equal to a plain dict with the same items."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse  # pyright: ignore

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed in place. Equal to a plain list with the same items."""

    __slots__ = ()
    __setitem__ = __delitem__ = append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # pyright: ignore
    __iadd__ = __imul__ = _refuse  # pyright: ignore

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


def freeze(value: object) -> JsonValue:
    """Check a value and give it back detached and immutable.

    Args:
        value: anything; only what the module's first paragraph allows passes.

    Returns:
        The same value, made of `FrozenDict`, `FrozenList` and plain scalars.

    Raises:
        NotJsonError: names the path inside the value (``.properties.a[0]``) and what is wrong there.
    """
    return _freeze(value, "", 0)


def thaw(value: JsonValue) -> Any:
    """A deep copy of a (frozen) JSON value in plain dicts and lists, free to be changed."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def _freeze(value: object, path: str, depth: int) -> JsonValue:
    if value is None or value is True or value is False:
        return cast("JsonValue", value)
    if isinstance(value, str):
        return _string(value, path)
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise NotJsonError(path, "is an integer beyond ±(2^53 − 1), which JSON readers round; pass it as a string")
        return int(value)
    if isinstance(value, float):
        return _float(value, path)
    if depth >= MAX_DEPTH:
        raise NotJsonError(path, f"is nested more than {MAX_DEPTH} deep (or contains itself); flatten it")
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return FrozenDict({_key(key, path): _freeze(item, f"{path}.{key}", depth + 1) for key, item in items})
    if isinstance(value, list):
        members = enumerate(cast("list[object]", value))
        return FrozenList([_freeze(item, f"{path}[{index}]", depth + 1) for index, item in members])
    kind = type(value)
    way_out = "give a list" if issubclass(kind, (tuple, set, frozenset)) else "give what it stands for"
    raise NotJsonError(path, f"is {with_article(kind.__name__)}, which JSON does not have; {way_out}")


def _string(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as fault:
            why = f"holds a lone surrogate at character {fault.start}; repair it where it is read"
            raise NotJsonError(path, why) from None
    return "".join((value,))  # a subclass (a StrEnum member, say) becomes a plain string


def _float(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise NotJsonError(path, f"is {value}, which JSON does not have; give a number or None")
    if value == 0 and math.copysign(1, value) < 0:
        raise NotJsonError(path, "is −0.0, which does not survive JSON; use 0")
    return float(value)


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise NotJsonError(path, f"has the key {key!r}, which is no string; give it as one")
    try:
        return _string(key, path)
    except NotJsonError as fault:
        raise NotJsonError(path, f"has the key {key!r}, which {fault.reason}") from None
