"""Naive models of the rules: as plain as can be, slow, and written without a look at how the library does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIRST_LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAME_CHARACTERS = FIRST_LETTERS + "0123456789_"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a text, and where (both from 1)."""

    kind: str
    line: int
    column: int


def is_name(text: str) -> bool:
    """Whether a reference can spell it."""
    return text != "" and text[0] in FIRST_LETTERS and all(each in NAME_CHARACTERS for each in text)


def is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def rendered(text: str, values: Mapping[str, str | None]) -> str | Fault:
    """A template with its references resolved, or its first fault; read one character at a time."""
    out = ""
    at = 0
    while at < len(text):
        if text[at : at + 2] != "{{":
            if is_surrogate(text[at]):
                return fault("lone_surrogate", text, at)
            out += text[at]
            at += 1
            continue
        escaped = _escaped_name(text, at)
        if escaped is not None:
            out += "{{" + escaped + "}}"
            at += len(escaped) + 8
            continue
        inside = _group(text, at)
        if inside is None:
            if _has_later_close(text, at + 2):
                return fault("malformed_reference", text, at)
            out += "{{"
            at += 2
            continue
        wrong = _fault_of_reference(inside, values)
        if wrong is not None:
            return fault(wrong, text, at)
        out += str(values[inside])
        at += len(inside) + 4
    return out


def rendered_verbatim(text: str) -> str | Fault:
    """A text that is no template: itself, but for what no text may hold."""
    for at, character in enumerate(text):
        if is_surrogate(character):
            return fault("lone_surrogate", text, at)
    return text


def fault(kind: str, text: str, at: int) -> Fault:
    line, column = 1, 1
    for character in text[:at]:
        column += 1
        if character == "\n":
            line, column = line + 1, 1
    return Fault(kind, line, column)


def _escaped_name(text: str, at: int) -> str | None:
    """The name, where ``{{{{name}}}}`` stands."""
    end = at + 4
    while end < len(text) and text[end] in NAME_CHARACTERS:
        end += 1
    name = text[at + 4 : end]
    return name if text[at : at + 4] == "{{{{" and is_name(name) and text[end : end + 4] == "}}}}" else None


def _group(text: str, at: int) -> str | None:
    """The inside of a group that starts here and has no brace in it."""
    end = at + 2
    while end < len(text) and text[end] not in "{}":
        end += 1
    return text[at + 2 : end] if text[end : end + 2] == "}}" else None


def _has_later_close(text: str, at: int) -> bool:
    return any(text[place : place + 2] == "}}" for place in range(at, len(text)))


def _fault_of_reference(inside: str, values: Mapping[str, str | None]) -> str | None:
    if not is_name(inside):
        return "malformed_reference"
    if inside not in values:
        return "unknown_variable"
    value = values[inside]
    if value is None:
        return "valueless_variable"
    return "lone_surrogate" if any(is_surrogate(each) for each in value) else None


def merged(layers: Iterable[Iterable[Any]], *, by_name: bool) -> list[Any]:
    """Entries with a ``name`` and an ``order``, of layers farthest first, as the nearest layer sees them.

    A dict keeps a key's place when its value is replaced: just what a shadow does.
    """
    by_names: dict[str, Any] = {}
    for layer in layers:
        for entry in layer:
            by_names[entry.name] = entry
    entries = list(by_names.values())
    if by_name:
        entries.sort(key=lambda entry: entry.name)
    return sorted(entries, key=lambda entry: entry.order)


def tools_in_order(tools: Iterable[Any], tool_order: Sequence[str] | None, rest: str) -> list[Any]:
    """Tools by name in code points; with an order, the listed ones at their places and the others at the marker."""
    by_name = sorted(tools, key=lambda tool: [ord(each) for each in tool.name])
    if tool_order is None:
        return by_name
    listed: list[Any] = []
    for name in tool_order:
        if name == rest:
            listed += [tool for tool in by_name if tool.name not in tool_order]
        else:
            listed += [tool for tool in by_name if tool.name == name]
    return listed


def restored(
    canonical: Sequence[Any], result: Sequence[Any], protected: Iterable[str], name_of: Callable[[Any], str]
) -> list[Any]:
    """A result of listeners with the protected entries back in their places, by the rule to the letter.

    Everything that bears a protected name goes; then each protected original, in canonical order, is put before the
    first entry of the result that is unprotected and comes later than it canonically, or at the end.
    """
    guarded = set(protected)
    names = [name_of(entry) for entry in canonical]
    out = [entry for entry in result if name_of(entry) not in guarded]
    for place, original in enumerate(canonical):
        if name_of(original) not in guarded:
            continue
        for at, entry in enumerate(out):
            name = name_of(entry)
            if name not in guarded and name in names and names.index(name) > place:
                out.insert(at, original)
                break
        else:
            out.append(original)
    return out
