"""Tools as blocks for the gutter: what a model sees of them, and whose they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.cli.annotate import details_of, lines_of
from foreword.cli.gutter import Block, Note, Stretch
from foreword.jsonvalue import thaw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foreword.cli.shown import Rendered
    from foreword.cli.terminal import Screen
    from foreword.prompt.contributions import ToolSchema

__all__ = ["size_of", "summary", "tool_blocks"]

_LONGEST_CHOICE: Final = 60
_DEEPEST: Final = 3


def tool_blocks(rendering: Rendered, screen: Screen) -> list[Block]:
    """A block for each tool: its description, then one line that sums up its parameters; a blank line between two."""
    blocks: list[Block] = []
    for tool, origin in zip(rendering.tools, rendering.tool_origins, strict=True):
        owner = screen.name("?" if origin is None else origin.owner)
        note = Note(owner, screen.name(tool.name), size_of(tool), tuple(map(screen.name, details_of(origin))))
        lines = [(Stretch(line, owner),) for line in lines_of(tool.description, screen)]
        lines.append((Stretch(screen.name(summary(tool.parameters)), owner, is_aside=True),))
        blocks += [Block(((Stretch("", None),),)), Block(tuple(lines), (note,))]
    return blocks[1:]


def size_of(tool: ToolSchema) -> int:
    """Characters of the tool's schema as compact JSON, which is about what a provider is sent."""
    schema = {"name": tool.name, "description": tool.description, "parameters": thaw(dict(tool.parameters))}
    return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))


def summary(parameters: Mapping[str, Any]) -> str:
    """The parameters of a tool in one line, optional ones with a question mark: ``(path: string, limit?: integer)``."""
    return f"({', '.join(_fields(parameters, 0))})"


def _fields(schema: Mapping[str, Any], depth: int) -> list[str]:
    properties, required = _dict(schema.get("properties")), _list(schema.get("required"))
    return [f"{name}{'' if name in required else '?'}: {_type(each, depth)}" for name, each in properties.items()]


def _type(given: Any, depth: int) -> str:
    schema = _dict(given)
    if not schema or depth > _DEEPEST:
        return "any"
    if "enum" in schema or "const" in schema:
        return _choices(_list(schema.get("enum")) or [schema.get("const")])
    if either := _list(schema.get("anyOf")) or _list(schema.get("oneOf")):
        return " | ".join(dict.fromkeys(_type(each, depth + 1) for each in either))
    kind = schema.get("type")
    if kind == "array":
        return f"[{_type(schema.get('items'), depth + 1)}]"
    if kind == "object" and (fields := _fields(schema, depth + 1)):
        return f"{{{', '.join(fields)}}}"
    return " | ".join(map(str, _list(kind))) or str(kind or schema.get("$ref", "any"))


def _choices(values: Sequence[Any]) -> str:
    told = " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return told if len(told) <= _LONGEST_CHOICE else f"one of {len(values)} values"


def _dict(value: Any) -> dict[str, Any]:
    """The value, if a schema has the object there that it should have."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else []
