"""What readers of formats share: a history is taken apart into neutral messages and the shapes that they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.integrations.shape import Shape, leaves, left_in, mark
from foreword.integrations.spelled import spelled
from foreword.integrations.told import Heard, Told
from foreword.prompt.contributions import ToolSchema
from foreword.prompt.spans import SEPARATOR
from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foreword.session.events import MessageSource

__all__ = ["History", "Instructions", "content_of", "settings_of", "told_of", "tool_of"]

_TEXTS: Final = ("text", "input_text", "output_text")
_CACHE: Final = "cache_control"
_SERVERS: Final = ("server_label", "mcp_server_name")  # of whose tools there may be several
_PLAIN: Final = ("type", "function")  # what each tool with a schema is, in the formats that say so


class Instructions:
    """The instructions of a body, one after the other; each leaves a mark of its place in the system text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._size = 0

    def add(self, text: str) -> Any:
        """Take one in; gives what stands for it. An empty one says nothing, and stands for itself."""
        if not text:
            return ""
        start = self._size + (len(SEPARATOR) if self.texts else 0)
        self.texts.append(text)
        self._size = start + len(text)
        return mark("system", start, self._size)

    def content(self, content: Any) -> Any:
        """Take in the content of a system message, or system blocks: a text, or parts with a text each."""
        if isinstance(content, str):
            return self.add(content)
        parts = cast("Sequence[Mapping[str, Any]]", content)
        return [{**part, "text": self.add(part["text"])} if "text" in part else dict(part) for part in parts]


class History:
    """The messages of a body, one after the other, with the template of each of its items."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.items: list[tuple[Any, int]] = []  # templates, and how many texts each of them stands for
        self._names: dict[str, str] = {}  # of tools, by the ids of their calls
        self._size = 0
        self._began = 0

    def begin(self) -> None:
        """An item begins: what is added from here on is its own."""
        self._began = self._size

    def end(self, template: Any) -> None:
        """The item is whole."""
        self.items.append((template, self._size - self._began))

    @property
    def next(self) -> int:
        """The number of the text that comes next, from the beginning of the item."""
        return self._size - self._began

    def user(self, text: str, source: MessageSource | None = None) -> None:
        """Add what a user says, or somebody in a user's place."""
        self._add(UserMessage(text), source)

    def assistant(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        """Add what the model said."""
        self._names.update({call.id: call.name for call in calls})
        self._add(AssistantMessage(text, tuple(calls)))

    def call(self, call: ToolCall) -> int:
        """Add a call to what the model said last; gives the number of its first text."""
        last = self.heard[-1].message if self.heard else None
        if not isinstance(last, AssistantMessage):
            self.assistant("")
            return self.call(call)
        at = self.next
        self._names[call.id] = call.name
        self.heard[-1] = Heard(AssistantMessage(last.text, (*last.tool_calls, call)))
        self._size += 3
        return at

    def tool(self, call_id: str, text: str, *, is_error: bool = False) -> None:
        """Add what a tool answered."""
        self._add(ToolMessage(call_id, self._names.get(call_id, ""), text, is_error))

    def _add(self, message: Message, source: MessageSource | None = None) -> None:
        self.heard.append(Heard(message, source))
        self._size += len(leaves((message,)))


def content_of(content: Any, at: int) -> tuple[str, Any]:
    """The text of a content, and its template.

    Args:
        content: a text, null, or parts. Parts that are not all texts are told as their JSON.
        at: the number that the text has in its item.
    """
    if content is None or isinstance(content, str):
        return content or "", mark("text", at) if content else content
    parts = [cast("Mapping[str, Any]", part) for part in content]
    if all(part.get("type") in _TEXTS and isinstance(part.get("text"), str) for part in parts):
        return _joined(parts, at)
    bare = [{key: value for key, value in part.items() if key != _CACHE} for part in parts]
    marks = [
        mark("json", at, index, {_CACHE: part[_CACHE]}) if _CACHE in part else mark("json", at, index)
        for index, part in enumerate(parts)
    ]
    return canonical_json(bare).decode(), marks


def _joined(parts: Sequence[Mapping[str, Any]], at: int) -> tuple[str, Any]:
    text, templates = "", list[Any]()
    for part in parts:
        start, text = len(text), text + part["text"]
        templates.append({**part, "text": mark("text", at, start, len(text))})
    if len(parts) == 1:  # of whatever length, so that such messages are of one kind
        templates[0]["text"] = mark("text", at)
    return text, templates


def tool_of(tool: Mapping[str, Any], at: int, schema: str) -> tuple[ToolSchema, Any]:
    """A tool, and its template.

    Args:
        tool: as it was sent; one without a name or a schema is the provider's own, and told whole.
        at: its place among the tools.
        schema: the key of its schema.
    """
    if not isinstance(tool.get("name"), str) or not isinstance(tool.get(schema), dict):
        return ToolSchema(_name_of(tool), "", spelled(tool)), mark("tool", at, "parameters")
    description = tool.get("description")
    template = {**tool, "name": mark("tool", at, "name"), schema: mark("tool", at, "parameters")}
    if isinstance(description, str):
        template["description"] = mark("tool", at, "description")
    return ToolSchema(tool["name"], description or "", spelled(tool[schema])), template


def _name_of(tool: Mapping[str, Any]) -> str:
    """What a tool that is told whole is called: as it says, else as its type says, with the server if it tells one."""
    kind = str(tool.get("type") or "tool")
    inner = tool.get(kind)
    own = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    name = tool.get("name") or own.get("name")
    server = next((tool[key] for key in _SERVERS if tool.get(key)), None)
    return str(name or (f"{kind}:{server}" if server else kind))


def settings_of(body: Mapping[str, Any], others: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All of a body that is a setting, and the template of the body; what else there is has to be put into that."""
    settings = {key: spelled(value) for key, value in body.items() if key not in (*others, "model")}
    template: dict[str, Any] = {
        key: mark("model") if key == "model" else mark("setting", key) if key in settings else None for key in body
    }
    return settings, template


def told_of(
    body: Mapping[str, Any],
    settings: Mapping[str, Any],
    template: dict[str, Any],
    instructions: Instructions,
    history: History,
    tool: Callable[[Mapping[str, Any], int], tuple[ToolSchema, Any]],
    *,
    tools_in: Sequence[str] = ("tools",),
    continues: bool = False,
) -> Told:
    """What a body says, once its instructions and its history are taken in.

    Args:
        body: as it was sent.
        settings: see `settings_of`.
        template: of the body; takes those of the tools.
        instructions: of the body.
        history: of the body.
        tool: gives a tool and its template; see `tool_of`.
        tools_in: the keys of the body that lists of tools stand under.
        continues: see `Told`.
    """
    tools: list[tuple[ToolSchema, Any]] = []
    for key in tools_in:
        if body.get(key) is not None:
            listed = [tool(each, at) for at, each in enumerate(body[key], len(tools))]
            template[key] = [of_tool for _, of_tool in listed]
            tools += listed
    return Told(
        body["model"],
        settings,
        tuple(instructions.texts),
        tuple([schema for schema, _ in tools]),
        tuple(history.heard),
        Shape.of(template, history.items),
        tuple([_extras(of_tool) for _, of_tool in tools]),
        continues,
    )


def _extras(template: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool carries beside its schema. A mark for the cache is none of it, as it is no part of a message."""
    left = left_in(template)
    return {key: spelled(value) for key, value in left.items() if key != _CACHE and (key, value) != _PLAIN}
