"""Anthropic's messages format: a neutral request becomes the JSON body of ``POST /v1/messages``.

    client.messages.create(**anthropic.request(rendering, messages, config="anthropic:claude-sonnet-4-5"))

Pure: no SDK, no network. `foreword.wire.anthropic_stream` reads the answer; `foreword.wire.anthropic_marks` tells which
beginnings of a request the server is asked to keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.jsonvalue import thaw
from foreword.wire import anthropic_settings
from foreword.wire.anthropic_marks import count_marks, mark_head, mark_messages, system_blocks
from foreword.wire.anthropic_messages import Turns
from foreword.wire.history import checked_history, is_neutral
from foreword.wire.messages import Message, UserMessage
from foreword.wire.profiles import messages_profile_of
from foreword.wire.request import ModelConfig, ModelRequest
from foreword.wire.tool_names import check_tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.rendering import Rendering
    from foreword.wire.profiles import MessagesProfile

__all__ = ["VERSION", "body", "request"]

VERSION = "anthropic-messages/1"
"""Of the bodies that are made here: it changes whenever equal requests would give other bytes than before."""

_CACHE_CONTROL = "cache_control"  # as a setting: the server itself marks the last block, and counts that as a mark


def body(request: ModelRequest, *, profile: MessagesProfile | None = None) -> dict[str, Any]:
    """The JSON body of a request, without the options of its transport (``stream``).

    The system text becomes one or two blocks, which make up the text; none if it is blank. Tools keep their order,
    their schemas the order of their keys. What stands where `foreword.wire.anthropic_marks` says is marked for reuse.

    Args:
        request: the request in neutral form. Its ``origins`` make errors name the owners of tools.
        profile: how the server differs from others; by default that of the config's provider.

    Returns:
        ``model``, ``max_tokens``, ``system`` and ``tools`` (if there are any), ``messages``, then the settings in
        their order; plain dicts and lists, free to be changed.

    Raises:
        InvalidModelSettingError: a setting is none that a body can carry.
        InvalidToolNameError: the server refuses the name of a tool.
        ToolNameCollisionError: two tools bear the same name.
    """
    profile = profile or messages_profile_of(request.config.provider)
    turns = Turns()
    for message in request.messages:
        turns.add(message)
    if request.tools:
        anthropic_settings.check_thinking(request.config)
    return _marked(_head(request, profile), turns, profile)


def request(
    rendering: Rendering,
    messages: Iterable[Message | Mapping[str, Any] | Any],
    *,
    config: ModelConfig | str,
    profile: MessagesProfile | None = None,
) -> dict[str, Any]:
    """What ``client.messages.create(**…)`` takes, for those who use the vendor's SDK themselves.

    Args:
        rendering: the prompt. Its runtime contexts become the last message, of the user, unless there are none; keep
            it out of your own history, since the next request brings the next one.
        messages: the history: neutral messages, or whatever the SDK takes, which is passed on as it is. Where it
            brings marks (``cache_control``) of its own, none is added to it, and together there are no more than the
            server takes.
        config: model and settings, or ``"provider:model"``.
        profile: as for `body`.

    Returns:
        The keyword arguments.

    Raises:
        MisplacedInstructionsError: there is a system message among the messages; the rendering is the only one.
        InvalidModelError: the config is a text that names no model.
        ModelError: as for `body`.
    """
    config = ModelConfig.parse(config) if isinstance(config, str) else config
    profile = profile or messages_profile_of(config.provider)
    turns = Turns()
    for message in checked_history(messages):
        if is_neutral(message):
            turns.add(message)
        else:
            turns.add_foreign(message)
    told = ModelRequest(
        rendering.text, rendering.tools, (), config, rendering.tool_origins, stable_head=rendering.stable_head
    )
    made = _marked(_head(told, profile), turns, profile)
    if rendering.snapshot.strip():
        turns.add(UserMessage(rendering.snapshot))  # not marked: the next request has another one, at another place
    return made


def _head(request: ModelRequest, profile: MessagesProfile) -> dict[str, Any]:
    """A body without its messages."""
    config, tools = request.config, request.tools
    anthropic_settings.check_settings(config)
    check_tool_names(tools, profile.tool_names, profile.name, request.origins)
    settings = anthropic_settings.spelled(anthropic_settings.with_limit(config, profile).settings)
    made: dict[str, Any] = {"model": config.model, "max_tokens": settings.pop("max_tokens")}
    system = system_blocks(request.system, request.stable_head)
    if system:
        made["system"] = system
    if tools:
        made["tools"] = [_tool(tool) for tool in tools]
    return {**made, "messages": [], **settings}


def _marked(made: dict[str, Any], turns: Turns, profile: MessagesProfile) -> dict[str, Any]:
    """A body with its messages, and with its marks."""
    theirs = count_marks(turns.told) + (made.get(_CACHE_CONTROL) is not None)
    left = profile.most_marks - theirs
    left -= mark_head(made.get("tools", ()), made.get("system", ()), profile, left)
    if not theirs:
        mark_messages(turns.own, profile, left)
    made["messages"] = turns.told
    return made


def _tool(tool: ToolSchema) -> dict[str, Any]:
    schema = thaw(dict(tool.parameters))
    if "type" not in schema:  # without it the server refuses the tool, even one that takes no arguments
        schema = {"type": "object", **schema}
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": schema}
