"""What Pydantic AI tells of a request: whose each part of it is, and, where no bytes are to be seen, all that it says.

The framework is imported here and in `pydantic_ai` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import messages as parts
from pydantic_core import to_jsonable_python

from foreword.integrations.spelled import spelled
from foreword.integrations.told import Answered, Body, Credit, Credits, Heard, Sent, Told
from foreword.prompt.contributions import ToolSchema
from foreword.prompt.spans import SEPARATOR
from foreword.session.events import MessageSource
from foreword.wire.chunks import Finish, ModelFailure, Usage
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig, ModelRequest, canonical_json

if TYPE_CHECKING:
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

    from foreword.wire.chunks import FinishKind

__all__ = ["VERSION", "answered_by", "credits_of", "failed_by", "sent_to"]

VERSION: Final = "assembly/1"
"""The version of what stands for a body: its level, and that of the form."""

_OWN_TOOLS: Final = ("<agent>", "<output>")  # the toolsets of an agent's own tools
_NOT_SENT: Final = ("extra_headers", "timeout")  # of the settings; headers may hold credentials
_KINDS: Final[Mapping[str, FinishKind]] = {"stop": "stop", "length": "max-tokens", "tool_call": "tool-calls"}


# -- whose it is -------------------------------------------------------------------------------------------------------


def credits_of(messages: Sequence[parts.ModelMessage], asked: ModelRequestParameters, agent: str) -> Credits:
    """Whose the instructions and tools of a request are.

    Args:
        messages: of the request.
        asked: its parameters.
        agent: the name of the agent, whose everything else is.
    """
    named = [*_system_prompts(messages, agent), *(_credit(part, agent) for part in asked.instruction_parts or ())]
    tools = {tool.name: _owner_of_tool(tool, agent) for tool in (*asked.function_tools, *asked.output_tools)}
    return Credits(agent, tuple(named), tools)


def _system_prompts(messages: Sequence[parts.ModelMessage], agent: str) -> Iterator[Credit]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, parts.SystemPromptPart):
                yield Credit(part.content, part.dynamic_ref, agent)


def _credit(part: parts.InstructionPart, agent: str) -> Credit:
    if part.id is None:
        return Credit(part.content, part.name, agent)
    source = str(part.id.source)
    return Credit(part.content, str(part.id), source if ":" in source else agent)


def _owner_of_tool(tool: ToolDefinition, agent: str) -> str:
    if tool.capability_id is not None:
        return f"capability:{tool.capability_id}"
    return agent if tool.toolset_id in (None, *_OWN_TOOLS) else f"toolset:{tool.toolset_id}"


# -- all that it says --------------------------------------------------------------------------------------------------


def sent_to(
    model: Model,
    messages: Sequence[parts.ModelMessage],
    settings: ModelSettings | None,
    asked: ModelRequestParameters,
    credits: Credits,
) -> Sent:
    """A request at the level of assembly: what the framework hands to a model, which makes a body of it.

    Raises:
        ForewordError: it cannot be logged.
    """
    instructions, history = _instructions(messages, asked), tuple(_history(messages))
    shown = [tool for tool in (*asked.function_tools, *asked.output_tools) if _is_shown(tool, asked)]
    tools = tuple(map(_schema, shown))
    config = ModelConfig(model.system, model.model_name, _plain(settings))
    told = Told(model.model_name, config.settings, instructions, tools, history, tool_extras=tuple(map(_extras, shown)))
    request = ModelRequest(SEPARATOR.join(instructions), tools, tuple(heard.message for heard in history), config)
    return Sent(told, config, credits, Body("pydantic-ai", VERSION, request.canonical()))


def _plain(settings: ModelSettings | None) -> dict[str, Any]:
    """Settings as JSON; of what is none, how it reads."""
    given = {name: value for name, value in (settings or {}).items() if name not in _NOT_SENT}
    return {name: spelled(value) for name, value in to_jsonable_python(given, fallback=repr).items()}


def _instructions(messages: Sequence[parts.ModelMessage], asked: ModelRequestParameters) -> tuple[str, ...]:
    first = messages[0].parts if messages else ()
    leading = [part.content for part in first if isinstance(part, parts.SystemPromptPart)]
    if asked.instruction_parts is not None:
        told = [part.content for part in asked.instruction_parts]
    else:
        last = next((each for each in reversed(messages) if isinstance(each, parts.ModelRequest)), None)
        told = [] if last is None or last.instructions is None else [last.instructions]
    return tuple(text for text in (*leading, *told) if text)


def _is_shown(tool: ToolDefinition, asked: ModelRequestParameters) -> bool:
    return not tool.defer_loading or tool.name in asked.revealed_tool_names


def _schema(tool: ToolDefinition) -> ToolSchema:
    return ToolSchema(tool.name, tool.description or "", spelled(tool.parameters_json_schema))


def _extras(tool: ToolDefinition) -> dict[str, Any]:
    """What a model is told of a tool beside its schema; all else is between the framework and its user."""
    return {} if tool.strict is None else {"strict": tool.strict}


def _history(messages: Sequence[parts.ModelMessage]) -> Iterator[Heard]:
    for at, message in enumerate(messages):
        if isinstance(message, parts.ModelResponse):
            yield Heard(_said(message))
            continue
        for part in message.parts:
            if not (at == 0 and isinstance(part, parts.SystemPromptPart)):
                yield _heard(part)


def _heard(part: parts.ModelRequestPart) -> Heard:
    match part:
        case parts.SystemPromptPart():
            return Heard(UserMessage(part.content), MessageSource("system", "pydantic-ai"))
        case parts.ToolReturnPart():
            is_error = part.outcome != "success"
            return Heard(ToolMessage(part.tool_call_id, part.tool_name, part.model_response_str(), is_error))
        case parts.UserPromptPart():
            content = part.content
            return Heard(UserMessage(content if isinstance(content, str) else _json(content)))
        case _:
            return Heard(UserMessage(_json(part)), MessageSource(part.part_kind, "pydantic-ai"))


def _said(response: parts.ModelResponse) -> AssistantMessage:
    texts = [part.content for part in response.parts if isinstance(part, parts.TextPart)]
    calls = [part for part in response.parts if isinstance(part, parts.ToolCallPart)]
    return AssistantMessage(
        "".join(texts), tuple(ToolCall(call.tool_call_id, call.tool_name, call.args_as_json_str()) for call in calls)
    )


def _json(value: Any) -> str:
    return canonical_json(to_jsonable_python(value, fallback=repr)).decode()


# -- what came of it ---------------------------------------------------------------------------------------------------


def answered_by(response: parts.ModelResponse, milliseconds: int) -> Answered:
    """What a response says."""
    message = _said(response)
    reason = response.finish_reason or ("tool_call" if message.tool_calls else "stop")
    used = response.usage
    usage = Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    kind = _KINDS.get(reason)
    if kind is None:
        failure = ModelFailure(f"the answer ended with {reason}", "content_filter" if "filter" in reason else "unknown")
        return Answered(Finish("error", usage, failure, reason), None, milliseconds)
    return Answered(Finish(kind, usage, raw_reason=reason), message, milliseconds)


def failed_by(error: BaseException, milliseconds: int) -> Answered:
    """That there was no response."""
    if not isinstance(error, Exception):
        return Answered(Finish("aborted", raw_reason=type(error).__name__), None, milliseconds)
    failure = ModelFailure(f"{type(error).__name__}: {error}", "unknown", getattr(error, "status_code", None))
    return Answered(Finish("error", failure=failure), None, milliseconds)
