"""What a deployment file may hold, said once: the checks of its shape and the JSON Schema for editors come from here.

A shape checks one value and notes what is wrong with it, at its path; it never raises. `THE_FILE` is the whole file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from foreword.errors import InvalidModelError, did_you_mean, shown
from foreword.kernel.names import shortened
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from foreword.compose.faults import Faults
    from foreword.strictyaml import Path

__all__ = ["THE_FILE", "VERSION", "Shape"]

VERSION: Final = 1


class Shape(Protocol):
    """A shape that values may have."""

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong with a value."""
        ...

    def schema(self) -> dict[str, Any]:
        """The same as a JSON Schema."""
        ...


# -- single values -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """A string; numbers and the like are told to be put in quotes."""

    pattern: str = ""
    what: str = "a string"

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if not isinstance(value, str):
            quote = "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
            faults.add(path, f"must be {self.what}, not {_described(value)}{quote}")
        elif self.pattern and not re.fullmatch(self.pattern, value):
            faults.add(path, f"must be {self.what}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string", **({"pattern": f"^(?:{self.pattern})$"} if self.pattern else {})}


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``."""

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if not isinstance(value, bool):
            words = isinstance(value, str) and value.lower() in ("yes", "no", "on", "off")
            why = "; yes, no, on and off are words like others" if words else f", not {_described(value)}"
            faults.add(path, f"must be true or false{why}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number, or only a positive whole one."""

    positive_whole: bool = False

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if self.positive_whole and not (is_number and isinstance(value, int) and value > 0):
            faults.add(path, f"must be a positive whole number, not {_number(value)}")
        elif not is_number or not math.isfinite(cast("float", value)):
            faults.add(path, f"must be a number, not {_number(value)}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "integer", "minimum": 1} if self.positive_whole else {"type": "number"}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few values, which may be null."""

    values: tuple[str | int | None, ...]

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if isinstance(value, bool) or not any(value == each and type(value) is type(each) for each in self.values):
            told = " or ".join("null" if each is None else str(each) for each in self.values)
            kind = _described(value)
            is_of_the_kind = any(_described(each) == kind for each in self.values)
            faults.add(path, f"must be {told}" if is_of_the_kind else f"must be {told}, not {kind}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"enum": list(self.values)}


@dataclass(frozen=True, slots=True)
class Maybe:
    """A shape, or null."""

    shape: Shape

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if value is not None:
            self.shape.check(value, path, faults)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"anyOf": [self.shape.schema(), {"type": "null"}]}


# -- lists and mappings ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    shape: Shape
    what: str

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong, with each item."""
        if not isinstance(value, list):
            faults.add(path, f"must be a list of {self.what}, not {_described(value)}")
            return
        for at, item in enumerate(cast("list[object]", value)):
            self.shape.check(item, (*path, at), faults)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "array", "items": self.shape.schema()}


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from names that its writer chooses."""

    shape: Shape
    what: str
    pattern: str = ".+"
    names: str = "must not be empty"

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong, with each entry and its name."""
        if not isinstance(value, dict):
            faults.add(path, f"must be a mapping of {self.what}, not {_described(value)}")
            return
        for name, item in cast("dict[str, object]", value).items():
            if not re.fullmatch(self.pattern, name):
                faults.add((*path, name), f'the name "{shown(name)}" {self.names}')
            self.shape.check(item, (*path, name), faults)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        names = {"pattern": f"^(?:{self.pattern})$"}
        return {"type": "object", "propertyNames": names, "additionalProperties": self.shape.schema()}


@dataclass(frozen=True, slots=True)
class AnyMapping:
    """A mapping whose keys are somebody else's."""

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if not isinstance(value, dict):
            faults.add(path, f"must be a mapping, not {_described(value)}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "object"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a record."""

    shape: Shape
    doc: str
    required: bool = False
    spelling_of: str = ""  # the key whose other spelling this is: taken, and not advertised

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        doc = f"another spelling of {self.spelling_of}" if self.spelling_of else self.doc
        return {**self.shape.schema(), "description": doc, **({"deprecated": True} if self.spelling_of else {})}


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping whose keys are known."""

    what: str
    keys: Mapping[str, Key]
    later: tuple[str, ...] = ()  # keys that are to come, refused as such
    also: Callable[[dict[str, Any], Path, Faults], None] | None = None  # how the keys must fit together
    any_of: tuple[str, ...] = field(default=())  # of these at least one must be there

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong, with each key."""
        if not isinstance(value, dict):
            faults.add(path, f"must be {self.what}, not {_described(value)}")
            return
        held = cast("dict[str, Any]", value)
        for key, item in held.items():
            if key in self.keys:
                self.keys[key].shape.check(item, (*path, key), faults)
            else:
                faults.add((*path, key), self._why_unknown(key))
        for key, known in self.keys.items():
            if known.required and key not in held:
                faults.add((*path, key), f"is missing: {known.doc}")
        if self.any_of and not any(key in held for key in self.any_of):
            faults.add(path, f"holds nothing that would have an effect; give {' or '.join(self.any_of)}")
        if self.also is not None:
            self.also(held, path, faults)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        properties = {name: key.schema() for name, key in self.keys.items()}
        required = [name for name, key in self.keys.items() if key.required]
        made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            made["required"] = required
        if self.any_of:
            made["anyOf"] = [{"required": [name]} for name in self.any_of]
        return made

    def _why_unknown(self, key: str) -> str:
        if key in self.later:
            return "is not supported yet; take it out"
        known = [name for name, each in self.keys.items() if not each.spelling_of]
        return f"is no key of {self.what}; {did_you_mean(key, known, 'keys')}"


@dataclass(frozen=True, slots=True)
class Model:
    """``"provider:model"``, or ``{use: "provider:model", settings: {…}}``."""

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if isinstance(value, dict):
            _MODEL.check(cast("dict[str, Any]", value), path, faults)
        else:
            _ModelName("a model, as in openai:gpt-5, or {use: …, settings: {…}}").check(value, path, faults)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"anyOf": [_ModelName().schema(), _MODEL.schema()]}


@dataclass(frozen=True, slots=True)
class _ModelName:
    """``provider:model``, as `ModelConfig.parse` takes it."""

    what: str = "a model, as in openai:gpt-5"

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if not isinstance(value, str):
            faults.add(path, f"must be {self.what}, not {_described(value)}")
            return
        try:
            ModelConfig.parse(value)
        except InvalidModelError as error:
            faults.add(path, str(error))

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string", "pattern": r"^[^:\s]([^:]*[^:\s])?:\S(.*\S)?$"}


@dataclass(frozen=True, slots=True)
class TextOrFile:
    """A text, or ``{file: PATH}`` of one."""

    def check(self, value: object, path: Path, faults: Faults) -> None:
        """Note what is wrong."""
        if isinstance(value, dict):
            _FILE.check(cast("dict[str, Any]", value), path, faults)
        else:
            Text(what="a text or {file: PATH}").check(value, path, faults)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"anyOf": [{"type": "string"}, _FILE.schema()]}


def _described(value: object) -> str:
    """What kind of thing this is, in the words of a file, without showing it."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (dict, "a mapping"),
        (list, "a list"),
        (str, "a string"),
        (bool, "true or false"),
        ((int, float), "a number"),
    )
    return next((what for kind, what in kinds if isinstance(value, kind)), "nothing")


def _number(value: object) -> str:
    """As `_described`, but a number is shown: no key that takes one holds a secret."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return shortened(value) if is_number else _described(value)


# -- the file ----------------------------------------------------------------------------------------------------------


def _one_text(held: dict[str, Any], path: Path, faults: Faults) -> None:
    if "text" in held and "file" in held:
        faults.add((*path, "file"), "gives a text, and so does text; drop one of them")


def _some_mask(held: dict[str, Any], path: Path, faults: Faults) -> None:
    if "allow" not in held and held.get("deny") == []:
        faults.add((*path, "deny"), "denies nothing, so it has no effect; name tools, or drop it")


_PATH = Text(".+", "the path of a file, relative to this one")
_FILE: Final = Record(
    "a text or {file: PATH}", {"file": Key(_PATH, "a text file, relative to this one", required=True)}
)
_NAMES: Final = ListOf(Text(".+", "the name of a tool"), "names of tools")
_LIMIT: Final = Number(positive_whole=True)

_SYSTEM_PROMPT: Final = Record(
    "the configuration of the system prompt",
    {
        "identity": Key(
            Maybe(Text()), "the text of the section harness:identity; without one, include_harness_identity decides"
        ),
        "include_harness_identity": Key(
            Maybe(Flag()), "false leaves the section harness:identity out; true or null gives it its usual text"
        ),
        "include_runtime_context": Key(Flag(), "false keeps every runtime context out"),
        "persona": Key(TextOrFile(), "the text of the section deployment:persona, a template"),
        "tool_order": Key(
            Maybe(ListOf(Text(), "names of tools")),
            'names of tools in the order in which the model gets them, with one "<unlisted-tools>" for all others',
        ),
        "section_ties": Key(OneOf(("registration", "name")), "what decides between equal orders"),
        "limits": Key(
            Record(
                "limits",
                {
                    "text": Key(_LIMIT, "of one text, in bytes"),
                    "value": Key(_LIMIT, "of the value of one variable, in bytes"),
                    "rendered": Key(_LIMIT, "of a whole prompt, in bytes"),
                },
            ),
            "upper bounds, in bytes of UTF-8",
        ),
        "includeHarnessIdentity": Key(
            Maybe(Flag()), "include_harness_identity", spelling_of="include_harness_identity"
        ),
        "includeRuntimeContext": Key(Flag(), "include_runtime_context", spelling_of="include_runtime_context"),
        "toolOrder": Key(Maybe(ListOf(Text(), "names of tools")), "tool_order", spelling_of="tool_order"),
    },
)

_USE: Final = r"[^:\s]+|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_PLUGIN: Final = Record(
    "a plugin's entry",
    {
        "id": Key(
            Text(r"\S+", "a name without blanks"), "what this file calls the plugin, unique in it", required=True
        ),
        "use": Key(
            Text(_USE, "the name of an entry point, or package.module:name"),
            "an entry point of the group foreword.plugins, or package.module:name",
            required=True,
        ),
        "config": Key(Maybe(AnyMapping()), "the plugin's own configuration; ${env:NAME} stands for a secret"),
        "disabled": Key(Flag(), "true leaves the plugin out"),
    },
    later=("grants", "remove", "before", "after"),
)

_MODEL: Final = Record(
    'a model, as in "openai:gpt-5", or {use: …, settings: {…}}',
    {
        "use": Key(_ModelName(), "the provider and its name of the model, as in openai:gpt-5", required=True),
        "settings": Key(AnyMapping(), "what else is asked of it, as in {temperature: 0.2, max_tokens: 800}"),
    },
)

_AGENT: Final = Record(
    "an agent's entry",
    {
        "model": Key(Model(), 'the model that it asks, as in "openai:gpt-5"; {use: …, settings: {…}} says how'),
        "persona": Key(TextOrFile(), "the agent's own persona, which stands in the place of the common one"),
        "tools": Key(
            Record(
                "{allow: […], deny: […]}",
                {
                    "allow": Key(_NAMES, "only these tools, by name or pattern (mcp__git__*); [] for none"),
                    "deny": Key(_NAMES, "not these tools, by name or pattern"),
                },
                any_of=("allow", "deny"),
                also=_some_mask,
            ),
            "which tools the agent has",
        ),
        "labels": Key(
            MapOf(Text(), "names and texts"), "what its new sessions are labelled with, as in {tenant: acme}"
        ),
    },
    later=("preset", "delegates"),
)

_LOG: Final = Record(
    "what is said of the log",
    {
        "store": Key(
            Text(".+", "a store, as in sqlite:var/foreword.db"),
            "where sessions are kept, as in sqlite:var/foreword.db, relative to this file; may hold ${env:NAME}",
            required=True,
        ),
        "keep": Key(
            Text("[1-9][0-9]{0,4}[hdw]", "a time as in 30d: hours (h), days (d) or weeks (w)"),
            "how long contents are kept, as in 30d; older ones are erased when an agent is made, at most once a day",
        ),
        "content": Key(
            OneOf(("full", "masked", "digests")),
            "what is stored of what is said: all, all but what is sensitive, or only digests",
        ),
    },
)

_SECTION: Final = Record(
    "what to change of a section or context",
    {
        "enabled": Key(Flag(), "false leaves it out"),
        "order": Key(Number(), "its place among the others"),
        "text": Key(TextOrFile(), "another text, a template"),
        "file": Key(_PATH, "the same as text: {file: PATH}"),
        "why": Key(Text(), "the reason, which traces tell"),
    },
    any_of=("enabled", "order", "text", "file"),
    also=_one_text,
)

_RULE: Final = r"FW\d{0,3}"
_LINT: Final = Record(
    "what foreword lint is told",
    {
        "select": Key(
            ListOf(Text(_RULE, "the code of a rule, or its beginning, as in FW3"), "codes of rules"),
            "the rules that run, by code or its beginning; without it all do",
        ),
        "ignore": Key(
            MapOf(
                Text(r"(?s:.*\S.*)", "the reason why it is ignored"),
                "codes and reasons",
                rf"(?s:{_RULE}(:.+)?)",
                "must be the code of a rule, as in FW104, or CODE:NAME for one entry alone",
            ),
            "what is not to be told, and why: by the code of a rule, or CODE:NAME for one section, tool or variable",
        ),
        "section_tokens": Key(_LIMIT, "from how many estimated tokens on a section is told to be too large"),
    },
)

THE_FILE: Final = Record(
    "a deployment file",
    {
        "foreword": Key(OneOf((VERSION,)), f"the version of the file's shape, {VERSION}", required=True),
        "system_prompt": Key(Maybe(_SYSTEM_PROMPT), "the system prompt that all agents share"),
        "variables": Key(
            Maybe(
                MapOf(
                    Text(),
                    "names and texts",
                    "[a-z][a-z0-9_]*",
                    "must start with a lower-case letter and go on with lower-case letters, digits or underscores",
                )
            ),
            "values for {{name}} in texts",
        ),
        "plugins": Key(Maybe(ListOf(_PLUGIN, "plugins")), "the plugins that contribute"),
        "agents": Key(Maybe(MapOf(Maybe(_AGENT), "agents")), "agents: a model each, a persona or tools of their own"),
        "sections": Key(
            Maybe(MapOf(_SECTION, "changes")), "the deployment's last word on sections and contexts, by name"
        ),
        "log": Key(Maybe(_LOG), "where agents log their sessions"),
        "lint": Key(Maybe(_LINT), "what foreword lint looks for, and what it is not to tell"),
    },
    later=("presets", "remove", "before", "after"),
)
