"""What a deployment file says, as frozen values. Nothing here runs anything; secrets are names until plugins load."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.compose.secrets import shown_value
from foreword.compose.stores import USUAL_STORE
from foreword.jsonvalue import FrozenDict
from foreword.kernel.source import Source
from foreword.prompt.config import SystemPromptConfig
from foreword.strictyaml import spelled
from foreword.tools.masks import ToolMask

if TYPE_CHECKING:
    from datetime import timedelta

    from foreword.compose.faults import Document
    from foreword.jsonvalue import JsonValue
    from foreword.session.ledger import Content
    from foreword.strictyaml import Path as Way
    from foreword.wire.request import ModelConfig

__all__ = ["AgentEntry", "Deployment", "LintSettings", "LogSettings", "PluginEntry", "SectionChange", "Setting"]

DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One plugin, as it is to be mounted."""

    id: str
    use: str  # an entry point, or module:name
    config: JsonValue = None  # as written: expressions are not looked up
    disabled: bool = False
    index: int = 0  # its place in the list

    @property
    def path(self) -> Way:
        """Where it stands in the file."""
        return ("plugins", self.index)


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent: the model that it asks, a persona, a selection of tools, and what its sessions are labelled with."""

    name: str
    persona: str | None = None
    allow: tuple[str, ...] | None = None  # names and patterns; None for no such list
    deny: tuple[str, ...] | None = None
    model: ModelConfig | None = None
    labels: Mapping[str, str] = field(default_factory=FrozenDict)

    @property
    def mask(self) -> ToolMask | None:
        """Which tools it has; None for all."""
        return None if self.allow is None and self.deny is None else ToolMask(self.allow, self.deny)

    @property
    def path(self) -> Way:
        """Where it stands in the file."""
        return ("agents", self.name)


@dataclass(frozen=True, slots=True)
class SectionChange:
    """The deployment's last word on a section or context."""

    name: str
    enabled: bool = True
    order: float | None = None
    text: str | None = None
    why: str = ""

    @property
    def path(self) -> Way:
        """Where it stands in the file."""
        return ("sections", self.name)


@dataclass(frozen=True, slots=True)
class LintSettings:
    """What the file says to ``foreword lint``; which codes there are is known there."""

    select: tuple[str, ...] = ()  # codes and their beginnings; empty for all
    ignore: Mapping[str, str] = field(default_factory=FrozenDict)  # by code or ``CODE:NAME``: the reason
    section_tokens: int | None = None  # None for the usual budget


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the file says of the log."""

    store: str | None = None  # as written: expressions are not looked up; None for the usual store
    keep: timedelta | None = None  # None for ever
    content: Content = "full"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of a deployment, as `foreword config` shows it."""

    path: str  # as in ``plugins[0].config.currency``
    shown_value: str  # in JSON; of an expression the name, and whether it is set
    where: str  # ``file:line``, or ``default``


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment file, read and found to be in order as far as that can be told without its code.

    Attributes:
        file: the file, absolute.
        name: the file as it was named.
    """

    file: Path
    name: str
    system_prompt: SystemPromptConfig
    variables: Mapping[str, str]
    plugins: tuple[PluginEntry, ...]
    agents: Mapping[str, AgentEntry]
    sections: Mapping[str, SectionChange]
    _document: Document = field(repr=False, compare=False)
    lint: LintSettings = LintSettings()
    log: LogSettings = LogSettings()

    @property
    def folder(self) -> Path:
        """Where relative paths start, and modules are sought first."""
        return self.file.parent

    def origin_of(self, path: str | Way) -> str:
        """Where a value was written.

        Args:
            path: the way to it, as in ``("plugins", 0, "use")`` or ``"plugins[0].use"``.

        Returns:
            ``file:line``, or only the file for TOML, whose reader keeps no lines; ``default`` if it was not written.
        """
        spelling = path if isinstance(path, str) else spelled(path)
        for way, _ in _values(self._document.value, ()):
            if spelled(way) == spelling:
                return self._where(way)
        return DEFAULT

    def source_of(self, path: Way) -> Source:
        """The place of a value as traces name it: relative to the deployment's folder; of ``{file: X}`` that file.

        Of what was not written it is the place of the nearest thing above.
        """
        while path and _at(self._document.value, path) is None:
            path = path[:-1]
        value = _at(self._document.value, path)
        named = cast("dict[str, Any]", value).get("file") if isinstance(value, dict) else None
        if isinstance(named, str):
            return Source(PurePath(named).as_posix(), 1, is_text=True)
        place = self._document.place(path)
        return Source(self.file.name, 1 if place is None else place[0])

    def effective(self, environment: Mapping[str, str] | None = None) -> list[Setting]:
        """Every value that is in force, where it came from, and defaults where the file is silent.

        Args:
            environment: where to see whether a variable is set; None for the process's own.
        """
        held = os.environ if environment is None else environment
        written = [
            Setting(spelled(way), shown_value(value, held), self._where(way))
            for way, value in _values(self._document.value, ())
            if way and (value in ({}, []) or not isinstance(value, (dict, list)))
        ]
        return [*written, *self._defaults()]

    def _defaults(self) -> Iterator[Setting]:
        given = cast("dict[str, Any]", _at(self._document.value, ("system_prompt",)) or {})
        config = self.system_prompt
        for name in config.__slots__:
            spellings = {name, name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:])}
            if name == "limits":
                for limit in config.limits.__slots__:
                    if limit not in (given.get("limits") or {}):
                        yield Setting(f"system_prompt.limits.{limit}", str(getattr(config.limits, limit)), DEFAULT)
            elif not spellings & given.keys():
                yield Setting(f"system_prompt.{name}", json.dumps(getattr(config, name)), DEFAULT)
        if self.log.store is None:
            yield Setting("log.store", json.dumps(USUAL_STORE), DEFAULT)

    def _where(self, path: Way) -> str:
        place = self._document.place(path)
        return self.name if place is None else f"{self.name}:{place[0]}"


def _values(value: object, path: Way) -> Iterator[tuple[Way, object]]:
    """Every value of a document with its path, in its order."""
    yield path, value
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _values(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _values(item, (*path, index))


def _at(value: Any, path: Way) -> Any:
    """What stands at a path of a document; None if nothing does."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
