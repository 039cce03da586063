"""``${env:NAME}`` and ``${env:NAME:-default}``: the only expressions of a deployment file, and its only secrets.

They stand inside string values of a plugin's config, and in the log's store. What they stand for is looked up when the
deployment is opened, and is never shown: `Secrets.hide` takes it out of what a plugin's code says when it fails.
``$${`` is a plain ``${``. As in a shell, the default stands for a variable that is unset or empty; it cannot hold a
``}``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FromEnvironment", "Part", "Secrets", "parsed", "plain", "shown_value"]

_MARK: Final = re.compile(r"\$\$\{|\$\{")
_EXPRESSION: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SHORT: Final = 4  # taking a shorter value out of a message would garble it, and the gaps would tell it
_LINE: Final = 8  # a line of a longer secret that is long enough to be one itself
_START: Final = 16  # what cuts a long text short shows at least so much of it


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """One expression: a variable of the environment, and what stands for it where it is unset or empty."""

    name: str
    default: str | None = None

    def value(self, environment: Mapping[str, str]) -> str | None:
        """What it stands for; None if nothing does."""
        value = environment.get(self.name)
        return self.default if self.default is not None and not value else value

    def is_set(self, environment: Mapping[str, str]) -> bool:
        """Whether it stands for something of the environment, and not for its default."""
        return bool(environment.get(self.name)) or (self.default is None and self.name in environment)

    def __str__(self) -> str:
        return f"${{env:{self.name}}}"  # without the default, which may be as secret


Part: TypeAlias = str | FromEnvironment


def parsed(text: str) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """A string taken apart into plain stretches and expressions, and what is wrong with it; that shows none of it."""
    parts: list[Part] = []
    faults: list[str] = []
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        parts.append(text[at : mark.start()])
        expression = _EXPRESSION.match(text, mark.start())
        at = mark.end()
        if mark[0] == "$${":
            parts.append("${")
        elif expression is None:
            faults.append(
                f'"${{" at character {mark.start() + 1} begins no expression; the only ones are ${{env:NAME}} and '
                f'${{env:NAME:-default}}; for a plain "${{" write "$${{"'
            )
        else:
            parts.append(FromEnvironment(expression[1], expression[2]))
            at = expression.end()
    parts.append(text[at:])
    return tuple(part for part in parts if part != ""), tuple(faults)


def plain(text: str) -> str:
    """A string without expressions, with ``$${`` as ``${``."""
    return "".join(str(part) for part in parsed(text)[0])


def shown_value(value: object, environment: Mapping[str, str]) -> str:
    """A plain value as commands show it, in JSON; for an expression its name, and whether it is set."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    parts = parsed(value)[0]
    names = [part.name for part in parts if isinstance(part, FromEnvironment)]
    if not names:
        return json.dumps(plain(value), ensure_ascii=False)
    state = {name: "set" if name in environment else "not set" for name in names}
    if len(parts) == 1:
        return f"{parts[0]} ({state[names[0]]})"
    told = ", ".join(f"{name}: {how}" for name, how in state.items())
    return f"{json.dumps(''.join(map(str, parts)), ensure_ascii=False)} ({told})"


class Secrets:
    """The environment as one deployment sees it, and what of it was handed out."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._given: dict[str, str] = {}  # value of the environment: the name of its variable

    def filled_in(self, value: object) -> Any:
        """A copy of a config with every expression replaced by what it stands for; by no text where nothing does."""
        if isinstance(value, dict):
            return {key: self.filled_in(item) for key, item in cast("dict[str, object]", value).items()}
        if isinstance(value, list):
            return [self.filled_in(item) for item in cast("list[object]", value)]
        if not isinstance(value, str):
            return value
        return "".join(part if isinstance(part, str) else self._value(part) for part in parsed(value)[0])

    def hide(self, text: str, *, withhold: bool = True) -> str:
        """A message without any value that was handed out, also quoted, cut short, or only in part.

        Where a value is too short for that, the whole message is withheld.

        Args:
            text: the message.
            withhold: False lets a message with such a short value pass: for names, where it says nothing.
        """
        for value, name in self._given.items() if withhold else ():
            if 0 < len(value) < _SHORT and any(form in text for form in _forms(value)):
                return f"(withheld, since it holds the value of ${{env:{name}}})"
        forms = self._longest_first()
        if forms:
            whole = re.compile("|".join(map(re.escape, forms)))
            text = whole.sub(lambda match: forms[match[0]], text)
        for form, instead in forms.items():
            text = _without_start(text, form, instead)
        return text

    def _value(self, expression: FromEnvironment) -> str:
        value = expression.value(self._environment) or ""
        if value == self._environment.get(expression.name):  # a default stands in the file for all to read
            self._given[value] = expression.name
        return value

    def _longest_first(self) -> dict[str, str]:
        """What to look for, and what to put in its place."""
        found = {
            form: f"${{env:{name}}}"
            for value, name in self._given.items()
            if len(value) >= _SHORT
            for form in _forms(value)
        }
        return dict(sorted(found.items(), key=lambda each: (-len(each[0]), each[0])))

    def __repr__(self) -> str:
        return f"<Secrets: {', '.join(sorted(set(self._given.values()))) or 'none'}>"


def _forms(value: str) -> list[str]:
    """How a value may stand in a message: as it is, stripped, made printable, quoted, line by line."""
    lines = [line.strip() for line in value.splitlines()]
    printable = "".join(each if each.isprintable() else " " for each in value)  # as excerpts of faulty texts show it
    texts = [value, value.strip(), printable.strip(), *(line for line in lines if len(line) >= _LINE)]
    quoted = [
        form[1:-1] for text in texts for form in (repr(text), json.dumps(text), json.dumps(text, ensure_ascii=False))
    ]
    excerpts = ["".join(each if each.isprintable() else " " for each in text).strip() for text in texts]
    told = [form for form in excerpts if len(form) >= _SHORT]
    return [form for form in dict.fromkeys([*texts, *quoted, *told]) if form]


def _without_start(text: str, secret: str, instead: str) -> str:
    """A text without the beginning of a secret, as messages that are cut short show it."""
    start, rest = secret[:_START], secret[_START:]
    if not rest or start not in text:
        return text
    before, _, behind = text.partition(start)
    differs = (at for at, (one, other) in enumerate(zip(behind, rest, strict=False)) if one != other)
    more = next(differs, min(len(behind), len(rest)))
    return before + instead + _without_start(behind[more:], secret, instead)
