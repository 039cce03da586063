"""OpenAI's chat-completions format: a neutral request becomes the JSON body of ``POST /chat/completions``.

    client.chat.completions.create(**openai_chat.request(rendering, messages, config="openai:gpt-5"))

Pure: no SDK, no network. `foreword.wire.openai_chat_stream` reads the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.errors import InvalidModelSettingError
from foreword.jsonvalue import thaw
from foreword.wire.history import checked_history, is_neutral
from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from foreword.wire.profiles import profile_of
from foreword.wire.request import ModelConfig
from foreword.wire.settings import LIMITS, check_each
from foreword.wire.tool_names import check_tool_names, cleaned_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.rendering import Rendering
    from foreword.wire.profiles import ChatProfile
    from foreword.wire.request import ModelRequest

__all__ = ["VERSION", "body", "check_settings", "request"]

VERSION = "openai-chat/1"
"""Of the bodies that are made here: it changes whenever equal requests would give other bytes than before."""

_LONGEST_NAME = 64

_OURS = {
    "model": "is the model's name; it stands in the config itself",
    "messages": "is the history; hand messages to the request",
    "tools": "are contributed; register them with the prompt or the tool registry",
    "functions": "is the old way to give tools; register them with the prompt or the tool registry",
    "function_call": "is the old way to choose a tool; set tool_choice",
    "stream": "is decided by whoever sends the request",
    "stream_options": "is decided by whoever sends the request",
    "n": "would make several answers, and an agent goes on with one; ask again instead",
}


def body(request: ModelRequest, *, profile: ChatProfile | None = None) -> dict[str, Any]:
    """The JSON body of a request, without the options of its transport (``stream`` and such).

    The system text, unless it is empty, is the one system or developer message, at index 0. Tools keep their order,
    their schemas the order of their keys.

    Args:
        request: the request in neutral form. Its ``origins`` make errors name the owners of tools.
        profile: how the server differs from others; by default that of the config's provider.

    Returns:
        ``model``, ``messages``, ``tools`` (if there are any), then the settings in their order; plain dicts and lists,
        free to be changed.

    Raises:
        InvalidModelSettingError: a setting is none that a body can carry.
        InvalidToolNameError: the server refuses the name of a tool.
        ToolNameCollisionError: two tools bear the same name.
    """
    profile = profile or profile_of(request.config.provider)
    told = [_message(message, profile) for message in request.messages]
    return _body(request.system, request.tools, told, request.config, profile, request.origins)


def request(
    rendering: Rendering,
    messages: Iterable[Message | Mapping[str, Any] | Any],
    *,
    config: ModelConfig | str,
    profile: ChatProfile | None = None,
) -> dict[str, Any]:
    """What ``client.chat.completions.create(**…)`` takes, for those who use the vendor's SDK themselves.

    Args:
        rendering: the prompt. Its runtime contexts become the last message, of the user, unless there are none; keep
            it out of your own history, since the next request brings the next one.
        messages: the history: neutral messages, or whatever the SDK takes, which is passed on as it is.
        config: model and settings, or ``"provider:model"``.
        profile: as for `body`.

    Returns:
        The keyword arguments.

    Raises:
        MisplacedInstructionsError: there is a system or developer message among the messages; the rendering is the
            only one.
        InvalidModelError: the config is a text that names no model.
        ModelError: as for `body`.
    """
    config = ModelConfig.parse(config) if isinstance(config, str) else config
    profile = profile or profile_of(config.provider)
    told: list[Any] = [_message(each, profile) if is_neutral(each) else each for each in checked_history(messages)]
    if rendering.snapshot:
        told.append(_message(UserMessage(rendering.snapshot), profile))
    return _body(rendering.text, rendering.tools, told, config, profile, rendering.tool_origins)


def check_settings(config: ModelConfig, profile: ChatProfile) -> None:
    """See that a config's settings can go into a body.

    Raises:
        InvalidModelSettingError: one is not a setting but another part of the body, is of the wrong type, or is given
            twice by different names.
    """
    check_each(config, _OURS)
    if all(name in config.settings for name in LIMITS):
        why = f"is max_completion_tokens by another name, and both are given; give one (here {profile.max_tokens_key})"
        raise InvalidModelSettingError(str(config), "max_tokens", why)


def _body(
    system: str,
    tools: Sequence[ToolSchema],
    messages: list[Any],
    config: ModelConfig,
    profile: ChatProfile,
    origins: Sequence[Origin | None],
) -> dict[str, Any]:
    check_settings(config, profile)
    check_tool_names(tools, profile.tool_names, profile.name, origins)
    instructions = [{"role": profile.instructions_role(config.model), "content": system}] if system else []
    made: dict[str, Any] = {"model": config.model, "messages": [*instructions, *messages]}
    if tools:
        made["tools"] = [_tool(tool) for tool in tools]
    for name, value in config.settings.items():
        made[profile.max_tokens_key if name in LIMITS else name] = thaw(value)
    return made


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": thaw(dict(tool.parameters))}
    return {"type": "function", "function": function}


def _message(message: Message, profile: ChatProfile) -> dict[str, Any]:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, text=text):  # the format has no mark for an error: the text tells
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case AssistantMessage(text, ()):
            return {"role": "assistant", "content": text}
        case AssistantMessage(text, calls):
            return {
                "role": "assistant",
                "content": text or None,
                "tool_calls": [_call(call, profile) for call in calls],
            }


def _call(call: ToolCall, profile: ChatProfile) -> dict[str, Any]:
    # As the model wrote them; but servers that parse arguments refuse the empty text that some models write for none.
    # A name that the model made up must not fail every later request of the session.
    name = call.name if profile.tool_names.accepts(call.name) else cleaned_name(call.name, _LONGEST_NAME)
    function = {"name": name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}
