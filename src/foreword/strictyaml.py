"""YAML without its traps: what is read is what was meant, and whatever could mean something else is a fault.

Stands above `errors`, below everything that people write files for. PyYAML only splits the text into events; what they
mean is decided here, by YAML 1.2's core schema:

* ``on``, ``yes``, dates and ``12:30`` are plain words; only ``true``, ``false`` (also ``True``, ``TRUE``), ``null`` and
  ``~`` are more, and numbers that every reader reads alike.
* Faults: a key that stands twice, a key that is no string, tags, merge keys, several documents, numbers that readers
  disagree on (``010``, ``.inf``, beyond 2^53), aliases that contain themselves or stand for too much.
* Limits: 1 MiB, 64 levels, 100,000 values.

Every fault has its line and column. All of them are told, but for those behind a fault of the syntax itself.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from foreword.errors import Fault, YamlError, did_you_mean, shown, with_article

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "MAX_SIZE", "Document", "Path", "load", "read", "spelled"]

MAX_SIZE: Final = 1024 * 1024  # bytes in UTF-8
MAX_DEPTH: Final = 64
_MOST_VALUES: Final = 100_000
_MOST_BY_ALIASES: Final = 10_000  # values that all aliases together may stand for; 100 characters count like one more
_MOST_FAULTS: Final = 200
_MAX_INTEGER: Final = 2**53 - 1  # the largest int that every JSON reader keeps exactly

Path: TypeAlias = tuple[str | int, ...]
"""A way into a document: keys and indexes, as in ``("plugins", 1, "use")``."""

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_ODD_ZERO: Final = re.compile(r"[-+]?0[0-9]+")
_UNWELCOME: Final = re.compile(  # what YAML does not print, its line ends that editors do not know, and stray BOMs
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_PLAIN_KEY: Final = re.compile(r"[^\s.\[\]\"']+")


@dataclass(slots=True)
class _Node:
    """A value, and where its parts stand."""

    value: Any
    children: dict[str | int, tuple[tuple[int, int], _Node]] = field(default_factory=dict)
    weight: int = 1  # values that it holds when every alias is written out, itself included
    height: int = 0  # levels below it


class Document:
    """What a YAML text says.

    Attributes:
        value: plain data: dicts with string keys, lists, strings, ints, finite floats, bools, None.
    """

    __slots__ = ("_place", "_root", "value")

    def __init__(self, root: _Node, place: tuple[int, int]) -> None:
        self.value: Any = root.value
        self._root, self._place = root, place

    def place(self, path: Path) -> tuple[int, int] | None:
        """Line and column, from 1, of a key or list item; of the document itself for an empty path; None if unknown."""
        node, place = self._root, self._place
        for step in path:
            found = node.children.get(step)
            if found is None:
                return None
            place, node = found
        return place


def load(source: str | bytes, name: str) -> Document:
    """Read a YAML text.

    Args:
        source: the text, or its bytes in UTF-8; a BOM is dropped.
        name: what to call the file in faults.

    Raises:
        YamlError: all faults, each with its line and column.
    """
    document, faults = read(source, name)
    if faults or document is None:
        raise YamlError(faults)
    return document


def read(source: str | bytes, name: str, *, aliases: bool = True) -> tuple[Document | None, tuple[Fault, ...]]:
    """As `load`, but give the faults back, and beside them what could be read all the same.

    Args:
        source: the text, or its bytes in UTF-8; a BOM is dropped.
        name: what to call the file in faults.
        aliases: False makes every alias a fault, for files that have no use for any.

    Returns:
        The document, without what is at fault in it, or None after a fault of the syntax; and the faults.
    """
    reading = _Reading(name, aliases=aliases)
    try:
        text = reading.decoded(source)
        document = reading.document(text)
    except _StopError:
        document = None
    return document, tuple(reading.faults)


def spelled(path: Path) -> str:
    """A path as messages show it: ``plugins[1].config.key``; keys that would be unclear are quoted."""
    told = ""
    for step in path:
        if isinstance(step, int):
            told += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            told += f"{'.' if told else ''}{shown(step)}"
        else:
            told += f'["{shown(step)}"]'
    return told


class _StopError(Exception):
    """Nothing more can be read."""


class _Reading:
    """One text on its way from bytes to a document."""

    def __init__(self, name: str, *, aliases: bool) -> None:
        self.name = name
        self.faults: list[Fault] = []
        self._reads_aliases = aliases
        self._anchors: dict[str, _Node | None] = {}  # None: still being read
        self._by_aliases = 0
        self._path: list[str | int] = []
        self._values = 0
        self._kinds: Any = None  # the classes of events

    def fault(self, place: tuple[int, int], message: str) -> None:
        """Note a fault at a line and column."""
        self.faults.append(Fault(self.name, place[0], spelled(tuple(self._path)), message, place[1]))
        if len(self.faults) >= _MOST_FAULTS:
            self.stop(place, "there are more faults than these; mend them first")

    def stop(self, place: tuple[int, int], message: str) -> NoReturn:
        """Note a fault behind which nothing can be read."""
        self.faults.append(Fault(self.name, place[0], "", message, place[1]))
        raise _StopError

    # -- the text ------------------------------------------------------------------------------------------------------

    def decoded(self, source: str | bytes) -> str:
        """The text: UTF-8, not too large, without characters that nobody can see."""
        size = len(source) if isinstance(source, bytes) else len(source.encode("utf-8", "surrogatepass"))
        if size > MAX_SIZE:
            self.stop((1, 1), f"has {size:,} bytes, more than the limit of {MAX_SIZE:,}")
        if isinstance(source, bytes):
            source = self._from_utf8(source)
        text = source.removeprefix("\ufeff")
        for match in _UNWELCOME.finditer(text):
            what = f"the character U+{ord(match[0]):04X} must not stand here"
            way_out = f'; write it in double quotes, as "{_escape_of(match[0])}"' if match[0] not in "\0\ufeff" else ""
            self.fault(_end_of(text[: match.start()]), f"{what}{way_out}")
        if self.faults:
            raise _StopError
        return text

    def _from_utf8(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as fault:
            place = _end_of(data[: fault.start].decode())
            self.stop(place, f"byte 0x{data[fault.start]:02X} is not UTF-8; save the file as UTF-8")

    # -- from events to a document -------------------------------------------------------------------------------------

    def document(self, text: str) -> Document:
        """The one document of a text."""
        import yaml  # a hundred milliseconds, for those who read YAML

        self._kinds = yaml.events
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        events: Iterator[Any] = yaml.parse(text, Loader=loader)
        try:
            return self._document(events)
        except yaml.MarkedYAMLError as error:
            mark, begun = error.problem_mark or error.context_mark, error.context_mark
            told = ", ".join(part for part in (error.problem, error.context) if part)
            where = "" if begun is None or begun is mark else f" that begins in line {begun.line + 1}"
            if mark is not None and _is_tab(text, mark):
                where += "; it is a tab, and YAML is indented with spaces"
            self.stop((1, 1) if mark is None else (mark.line + 1, mark.column + 1), f"this is no YAML: {told}{where}")
        except yaml.YAMLError as error:  # characters, mostly; `decoded` has seen to those
            self.stop((1, 1), f"this is no YAML: {error}")

    def _document(self, events: Iterator[Any]) -> Document:
        root, place = _Node(None), (1, 1)
        documents = 0
        for event in events:
            if isinstance(event, self._kinds.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.stop(_place(event), "a second document begins; a file holds one")
                if event.version not in (None, (1, 2)):
                    self.fault(_place(event), "asks for YAML 1.1; this is read as YAML 1.2, so drop the line")
                first = next(events)
                place = _place(first)
                root = self._node(first, events)
        return Document(root, place)

    def _node(self, event: Any, events: Iterator[Any]) -> _Node:
        """The value that begins with an event."""
        self._values += 1
        if self._values > _MOST_VALUES:
            self.stop(_place(event), f"the file holds more than {_MOST_VALUES:,} values")
        if isinstance(event, self._kinds.AliasEvent):
            return self._alias(event)
        if event.tag is not None:
            what = "a plain one has none" if event.tag == "!" else f"tags such as {_short_tag(event.tag)} are not read"
            self.fault(_place(event), f"a value with a tag: {what}; drop it")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, self._kinds.ScalarEvent):
            node = self._scalar(event)
        else:
            if len(self._path) >= MAX_DEPTH:
                self.stop(_place(event), f"is nested more than {MAX_DEPTH} deep")
            is_mapping = isinstance(event, self._kinds.MappingStartEvent)
            node = self._mapping(events) if is_mapping else self._list(events)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _list(self, events: Iterator[Any]) -> _Node:
        children: dict[str | int, tuple[tuple[int, int], _Node]] = {}
        for event in events:
            if isinstance(event, self._kinds.SequenceEndEvent):
                break
            index = len(children)
            self._path.append(index)
            children[index] = (_place(event), self._node(event, events))
            self._path.pop()
        return _holding([node.value for _, node in children.values()], children)

    def _mapping(self, events: Iterator[Any]) -> _Node:
        children: dict[str | int, tuple[tuple[int, int], _Node]] = {}
        for event in events:
            if isinstance(event, self._kinds.MappingEndEvent):
                break
            key = self._key(event, events)
            self._path.append("?" if key is None else key)
            if key is not None and key in children:
                line = children[key][0][0]
                self.fault(_place(event), f"stands here again, and in line {line} already; drop one of them")
                key = None
            node = self._node(next(events), events)
            self._path.pop()
            if key is not None:
                children[key] = (_place(event), node)
        return _holding({key: node.value for key, (_, node) in children.items()}, children)

    def _key(self, event: Any, events: Iterator[Any]) -> str | None:
        """The key that begins with an event; None if it is none."""
        if not isinstance(event, self._kinds.ScalarEvent):
            what = "an alias" if isinstance(event, self._kinds.AliasEvent) else "a list or mapping"
            self.fault(_place(event), f"{what} cannot be a key; write a string")
            self._node(event, events)
            return None
        faults = len(self.faults)
        key = self._node(event, events).value
        if len(self.faults) > faults:
            return None
        if not isinstance(key, str):
            what = "null" if key is None else with_article(type(key).__name__)
            self.fault(_place(event), f"a key must be a string, and this one is {what}; put it in quotes")
            return None
        if key == "<<" and event.implicit[0]:
            self.fault(_place(event), 'merge keys ("<<") are no part of YAML 1.2; write the entries out')
            return None
        return key

    def _alias(self, event: Any) -> _Node:
        name: str = event.anchor
        if not self._reads_aliases:
            why = "is an alias to YAML, and none are read here"
            self.fault(_place(event), f'*{shown(name)} {why}; if it is a text, put it in quotes: "*{shown(name)}"')
            return _Node(None)
        node = self._anchors.get(name)
        if node is None:
            contains = name in self._anchors
            known = [each for each, held in self._anchors.items() if held is not None]
            why = "is part of what it stands for" if contains else f"is unknown; {did_you_mean(name, known, 'anchors')}"
            self.fault(_place(event), f"the alias *{shown(name)} {why}")
            return _Node(None)
        if len(self._path) + node.height > MAX_DEPTH:
            self.fault(_place(event), f"with the alias *{shown(name)} this is nested more than {MAX_DEPTH} deep")
            return _Node(None)
        self._by_aliases += node.weight
        if self._by_aliases > _MOST_BY_ALIASES:
            what = f"the aliases up to here stand for more than {_MOST_BY_ALIASES:,} values"
            self.stop(_place(event), f"{what}; write out what you mean")
        return node

    def _scalar(self, event: Any) -> _Node:
        text: str = event.value
        weight = 1 + len(text) // 100
        if event.implicit[0] and event.tag is None:
            return _Node(self._meant(text, _place(event)), weight=weight)
        for match in re.finditer("[\0\ud800-\udfff]", text):
            self.fault(_place(event), f"holds the character U+{ord(match[0]):04X}, which no text may hold")
            break
        return _Node(text, weight=weight)

    def _meant(self, text: str, place: tuple[int, int]) -> str | int | float | bool | None:
        """What a word without quotes means."""
        if text in _NULL:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if text[0] not in "+-.0123456789":
            return text
        if _ODD_ZERO.fullmatch(text):
            self.fault(
                place, "is a number with a leading zero, which readers take in two ways; quote it, or drop the zero"
            )
            return None
        if _NO_NUMBER.fullmatch(text):
            self.fault(place, f"{text} is no number that JSON has; quote it if it is a word")
            return None
        if _INTEGER.fullmatch(text):
            return self._integer(text, place)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                self.fault(place, "is a number that is too large; quote it if it is a word")
                return None
            return number or 0.0  # −0.0 does not survive JSON
        return text

    def _integer(self, text: str, place: tuple[int, int]) -> int | None:
        digits = text.removeprefix("0o").removeprefix("0x")
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        # many digits are never turned into a number, which would take long
        number = _MAX_INTEGER + 1 if len(digits) > len(str(_MAX_INTEGER)) + 4 else int(digits, base)
        if abs(number) > _MAX_INTEGER:
            self.fault(place, "is an integer beyond ±(2^53 − 1), which readers round; put it in quotes")
            return None
        return number


def _holding(value: Any, children: dict[str | int, tuple[tuple[int, int], _Node]]) -> _Node:
    nodes = [node for _, node in children.values()]
    weight = 1 + sum(node.weight for node in nodes)
    return _Node(value, children, weight, 1 + max((node.height for node in nodes), default=0))


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _is_tab(text: str, mark: Any) -> bool:
    line, column = int(mark.line), int(mark.column)
    return any(found[column : column + 1] == "\t" for found in _lines(text)[line : line + 1])


def _end_of(text: str) -> tuple[int, int]:
    """Line and column, from 1, of what comes behind a text."""
    lines = _lines(text)
    return len(lines), len(lines[-1]) + 1


def _lines(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text)


def _escape_of(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _short_tag(tag: str) -> str:
    return shown(tag.replace("tag:yaml.org,2002:", "!!"))
