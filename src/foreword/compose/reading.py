"""From a file to a `Deployment`: every check that needs none of the deployment's code. Imports and runs nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foreword.compose.deployment import AgentEntry, Deployment, LintSettings, LogSettings, PluginEntry, SectionChange
from foreword.compose.faults import Faults, paths_in
from foreword.compose.files import document_of, path_of, read_file
from foreword.compose.secrets import FromEnvironment, parsed, plain
from foreword.compose.shape import THE_FILE
from foreword.errors import EntryRef, InvalidConfigError, PromptTooLargeError, StoreError, UnreadableTextError
from foreword.jsonvalue import FrozenDict, freeze
from foreword.prompt.config import PromptLimits, SystemPromptConfig
from foreword.prompt.text import read_text, within
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from foreword.compose.faults import Document
    from foreword.strictyaml import Path as Way

__all__ = ["Reading", "read_deployment"]

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A file as far as it could be read."""

    faults: Faults
    deployment: Deployment | None  # without what is at fault in it; None if too little is left

    @classmethod
    def of(cls, file: str | Path, data: bytes, environment: Mapping[str, str]) -> Reading:
        """Take a file apart, whose bytes were read, and check it."""
        path, name = Path(file), str(file)
        document, found = document_of(data, name, toml=path.suffix == ".toml")
        faults = Faults(name, document, found)
        if document is None:
            return cls(faults, None)
        if not isinstance(document.value, dict):
            what = "is empty" if document.value is None else "must be a mapping"
            if not found:
                faults.add((), f"{what}; begin it with the line: foreword: 1")
            return cls(faults, None)
        checker = _Checker(path.absolute(), document, faults, environment)
        return cls(faults, checker.deployment())

    def checked(self) -> Deployment:
        """What the file says, if there is nothing wrong with it.

        Raises:
            DeploymentError: with all that there is.
        """
        self.faults.check()
        assert self.deployment is not None  # noqa: S101 - without faults there is one
        return self.deployment


def read_deployment(file: str | Path, *, environment: Mapping[str, str] | None = None) -> Deployment:
    """Read a deployment file and check all that can be checked without its plugins' code, which is not touched.

    Args:
        file: a YAML or TOML file, by its suffix.
        environment: where expressions look for variables; None for the process's own.

    Raises:
        DeploymentError: every fault of the file at once, each with line and path.
        TypeError: the file is no path.
    """
    data = read_file(path_of(file), str(file))
    return Reading.of(file, data, os.environ if environment is None else environment).checked()


class _Checker:
    """One file on its way from a document to a deployment."""

    def __init__(self, file: Path, document: Document, faults: Faults, environment: Mapping[str, str]) -> None:
        self._file, self._document, self._faults, self._environment = file, document, faults, environment
        self._limits = PromptLimits()

    def deployment(self) -> Deployment:
        """Check everything, and build what can be built."""
        THE_FILE.check(self._document.value, (), self._faults)
        self._check_expressions()
        config = self._system_prompt()
        return Deployment(
            self._file,
            self._faults.name,
            config,
            FrozenDict(self._variables()),
            tuple(self._plugins()),
            FrozenDict({each.name: each for each in self._agents()}),
            FrozenDict({each.name: each for each in self._sections()}),
            self._document,
            self._lint(),
            self._log(),
        )

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _check_expressions(self) -> None:
        disabled = {at for at, item in enumerate(self._list("plugins")) if _get(item, "disabled") is True}
        for path in paths_in(self._document.value):
            text = self._at(path)
            if isinstance(text, str) and "${" in text and not self._faults.touch(path):
                parts, why = parsed(text)
                for each in why:
                    self._faults.add(path, each)
                expressions = [part for part in parts if isinstance(part, FromEnvironment)]
                if expressions and not why:
                    self._check_use_of(expressions, path, asked=path[1:2] not in [(at,) for at in disabled])

    def _check_use_of(self, expressions: list[FromEnvironment], path: Way, *, asked: bool) -> None:
        if path != ("log", "store") and (path[:1] != ("plugins",) or path[2:3] != ("config",)):
            what = f"{expressions[0]} is a secret, and would be shown here; secrets belong in a plugin's config"
            self._faults.add(path, f"{what}; for plain text write $${{ for ${{")
            return
        for each in expressions:
            if asked and each.value(self._environment) is None:
                way_out = f"set it, or give a default: ${{env:{each.name}:-default}}"
                self._faults.add(path, f"the environment variable {each.name} is not set; {way_out}")

    # -- the parts of the file -----------------------------------------------------------------------------------------

    def _system_prompt(self) -> SystemPromptConfig:
        above: Way = ("system_prompt",)
        fields = {key: value for key, value in self._mapping(above) if not self._faults.touch((*above, key))}
        if "limits" in fields:
            fields["limits"] = self._limits = PromptLimits(**fields["limits"])
        if "persona" in fields:
            fields["persona"] = self._text(fields["persona"], (*above, "persona")) or ""
        for name in {"tool_order", "toolOrder"} & fields.keys():
            fields[name] = None if fields[name] is None else [plain(tool) for tool in fields[name]]
        if isinstance(fields.get("identity"), str):
            fields["identity"] = self._text(fields["identity"], (*above, "identity"))
        try:
            return SystemPromptConfig(**fields)
        except InvalidConfigError as error:
            for fault in error.faults:
                spellings = [key for key in fields if key.replace("_", "").lower() == fault.field.replace("_", "")]
                field = fault.field if fault.field in fields else next(iter(spellings), fault.field)
                self._faults.add((*above, field), fault.message)
        return SystemPromptConfig()

    def _variables(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in self._mapping(("variables",)):
            path: Way = ("variables", name)
            if not self._faults.touch(path):
                found[name] = plain(value)
                self._fits(found[name], self._limits.value, path)
        return found

    def _plugins(self) -> Iterator[PluginEntry]:
        holders: dict[str, int] = {}
        for at, item in enumerate(self._list("plugins")):
            above: Way = ("plugins", at)
            name, use = _get(item, "id"), _get(item, "use")
            if isinstance(name, str) and holders.setdefault(name, at) != at:
                line = self._faults.line(("plugins", holders[name]))
                where = "" if line is None else f" (line {line})"
                self._faults.add(
                    (*above, "id"), f'"{name}" is the id of plugins[{holders[name]}]{where}, too; ids are unique'
                )
            if self._sound(above, "use") and isinstance(use, str):
                config = freeze(_get(item, "config")) if self._sound(above, "config") else None
                yield PluginEntry(str(name), use, config, _get(item, "disabled") is True, at)

    def _agents(self) -> Iterator[AgentEntry]:
        for name, entry in self._mapping(("agents",)):
            above: Way = ("agents", name)
            persona = _get(entry, "persona") if self._sound(above, "persona") else None
            text = None if persona is None else self._text(persona, (*above, "persona"))
            tools = _get(entry, "tools") if self._sound(above, "tools") else None
            model = _model(_get(entry, "model")) if self._sound(above, "model") else None
            labels: dict[str, str] = (_get(entry, "labels") if self._sound(above, "labels") else None) or {}
            told = FrozenDict({label: plain(value) for label, value in labels.items()})
            yield AgentEntry(name, text, _names(tools, "allow"), _names(tools, "deny"), model, told)

    def _sections(self) -> Iterator[SectionChange]:
        for name, entry in self._mapping(("sections",)):
            above: Way = ("sections", name)
            if not isinstance(entry, dict) or self._faults.touch(above):
                continue
            held = cast("dict[str, Any]", entry)
            text: str | None = None
            if "text" in held:
                text = self._text(held["text"], (*above, "text"))
            elif "file" in held:
                text = self._text({"file": held["file"]}, (*above, "file"))
            yield SectionChange(name, held.get("enabled", True), held.get("order"), text, plain(held.get("why", "")))

    def _lint(self) -> LintSettings:
        held = {key: value for key, value in self._mapping(("lint",)) if self._sound(("lint",), key)}
        ignore = {name: plain(why) for name, why in held.get("ignore", {}).items()}
        select = tuple(plain(code) for code in held.get("select", ()))
        return LintSettings(select, FrozenDict(ignore), held.get("section_tokens"))

    def _log(self) -> LogSettings:
        path: Way = ("log", "store")
        held = dict(self._mapping(("log",)))
        store = held.get("store")
        if store is None or self._faults.touch(("log",)):
            return LogSettings()
        if not any(isinstance(part, FromEnvironment) for part in parsed(store)[0]):
            self._check_store(plain(store), path)
        keep = held.get("keep")
        age = None if keep is None else timedelta(**{_UNITS[keep[-1]]: int(keep[:-1])})
        return LogSettings(store, age, held.get("content", "full"))

    def _check_store(self, url: str, path: Way) -> None:
        from foreword.session.store.places import path_of  # here: few files have a log, and loading it takes time

        try:
            path_of(url)
        except StoreError as error:
            self._faults.add(path, error.why)

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _text(self, value: Any, path: Way) -> str | None:
        """A text, or that of a file; None if it cannot be had, which is noted."""
        text = plain(value) if isinstance(value, str) else self._text_of(plain(value["file"]), path)
        return text if text is not None and self._fits(text, self._limits.text, path) else None

    def _text_of(self, named: str, path: Way) -> str | None:
        file = self._file.parent / named
        at = (*path, "file") if path[-1] != "file" else path
        try:
            if not file.is_file():  # opening what is no plain file may wait for ever
                why = "is no plain file" if file.exists() else "is not there"
                self._faults.add(at, f"{named} {why}; paths are relative to {self._faults.name}")
                return None
            if file.stat().st_size > 2 * self._limits.text + 4:  # however many line ends are folded: not even read
                self._too_large(file.stat().st_size, self._limits.text, path)
                return None
            return read_text(file, EntryRef("file", named, "the deployment"))
        except UnreadableTextError as error:
            self._faults.add(at, f"{named} cannot be read: {error.why}")
        except (OSError, ValueError) as error:  # a name that no file can have
            self._faults.add(at, f"cannot be read: {error.strerror if isinstance(error, OSError) else error}")
        return None

    def _fits(self, text: str, limit: int, path: Way) -> bool:
        try:
            within(limit, text, "it")
        except PromptTooLargeError as error:
            self._too_large(error.size, limit, path)
            return False
        return True

    def _too_large(self, size: int, limit: int, path: Way) -> None:
        what = f"has {size:,} bytes, more than the limit of {limit:,}"
        self._faults.add(path, f"{what}; shorten it, or raise the limit in system_prompt.limits")

    # -- ways into the document ----------------------------------------------------------------------------------------

    def _at(self, path: Way) -> Any:
        value: Any = self._document.value
        for step in path:
            value = value[step]
        return value

    def _list(self, key: str) -> list[Any]:
        value = _get(self._document.value, key)
        return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]

    def _mapping(self, path: Way) -> list[tuple[str, Any]]:
        value = _get(self._document.value, str(path[0]))
        return list(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else []

    def _sound(self, above: Way, key: str) -> bool:
        return not self._faults.touch((*above, key))


def _get(value: object, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _names(tools: object, key: str) -> tuple[str, ...] | None:
    names: list[str] | None = _get(tools, key)
    return None if names is None else tuple(plain(name) for name in names)


def _model(given: Any) -> ModelConfig | None:
    if given is None:
        return None
    if isinstance(given, str):
        return ModelConfig.parse(plain(given))
    return ModelConfig.parse(plain(given["use"]), _plain_in(given.get("settings") or {}))


def _plain_in(value: Any) -> Any:
    """A value with every string in it as `plain` has it."""
    if isinstance(value, dict):
        return {key: _plain_in(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain_in(item) for item in cast("list[object]", value)]
    return plain(value) if isinstance(value, str) else value
