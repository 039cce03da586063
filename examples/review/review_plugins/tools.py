"""Tools, each with its guidance, which goes where the tool goes."""

from __future__ import annotations

from pathlib import Path

from foreword import TOOL_GUIDANCE_ORDER, JsonValue, SystemPrompt, ToolSchema, plugin

TEXTS = Path(__file__).parents[1] / "texts"


@plugin(name="files")
def files(prompt: SystemPrompt) -> None:
    """Reading and searching."""
    path: JsonValue = {"type": "string", "description": "Relative to the root of the repository."}
    pattern: JsonValue = {"type": "string", "description": "A regular expression."}
    line: JsonValue = {"type": "integer", "minimum": 1}
    case: JsonValue = {"enum": ["match", "ignore"]}
    read = arguments(["path"], path=path, first_line=line, last_line=line)
    search = arguments(["pattern"], pattern=pattern, folder=path, case=case)
    prompt.tools(
        [
            ToolSchema("read_file", "Read a text file, or some lines of it.", read),
            ToolSchema("search", "Find the lines that match a pattern.", search),
        ]
    )
    prompt.section("tool:read_file", TEXTS / "read_file.md", order=TOOL_GUIDANCE_ORDER, requires_tools=["read_file"])
    prompt.section("tool:search", TEXTS / "search.md", order=TOOL_GUIDANCE_ORDER + 1, requires_tools=["search"])


@plugin(name="shell")
def shell(prompt: SystemPrompt) -> None:
    """Running commands."""
    timeout: JsonValue = {"type": "number", "description": "In seconds; 60 unless given."}
    run = arguments(["command"], command={"type": "string"}, timeout=timeout)
    prompt.tools([ToolSchema("run", "Run a command in a sandbox without network.", run)])
    prompt.section("tool:run", TEXTS / "run.md", order=TOOL_GUIDANCE_ORDER + 2, requires_tools=["run"])


def arguments(required: list[str], **properties: JsonValue) -> dict[str, JsonValue]:
    """The JSON Schema of a tool's arguments."""
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}
