"""An agent of Pydantic AI with all that there is to see: named, unnamed and appended instructions, toolsets, a tool that
comes late, a capability that edits requests after everybody else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model, ModelRequestContext, StreamedResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from tests.integrations.support import CHAT, RESPONSES, SOON, Wire
from tests.support.recording_server import Answer, RecordingServer

HOUSE_RULES = "You are the clerk of a bookshop. " + "Be brief. " * 600


class Hinting(WrapperModel):
    """A model that is told one thing more than its caller knows."""

    async def request(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: Any
    ) -> ModelResponse:
        return await super().request(_hinted(messages), model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncGenerator[StreamedResponse]:
        hinted = _hinted(messages)
        async with super().request_stream(hinted, model_settings, model_request_parameters, run_context) as stream:
            yield stream


def _hinted(messages: list[ModelMessage]) -> list[ModelMessage]:
    return [*messages, ModelRequest(parts=[UserPromptPart("(hinted by a model)")])]


class Editor(AbstractCapability[Any]):
    """Adds remarks to each request; it is listed last, so a recorder that is not innermost would miss one of them."""

    def get_wrapper_model(self, model: Model) -> Model:
        return Hinting(model)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        remark = ModelRequest(parts=[UserPromptPart("(edited by a capability)")])
        return replace(request_context, messages=[*request_context.messages[:-1], remark, request_context.messages[-1]])


class Budget(AbstractCapability[Any]):
    """Contributes an instruction of its own, under its id."""

    def __init__(self) -> None:
        self.id, self.description, self.defer_loading = "budget", None, False

    def get_instructions(self) -> str:
        return "You may spend 50 EUR."


@dataclass
class Shop:
    """What the agent's dynamic instructions look at."""

    minutes: Iterator[int] = field(default_factory=lambda: iter(range(29, 59)))
    stock: str = "Stock: 3 copies."


def model_of(wire: Wire, server: RecordingServer) -> Model:
    """A model of the framework that asks a server in a format."""
    if wire is CHAT:
        return OpenAIChatModel("gpt-5.2", provider=OpenAIProvider(base_url=server.url, api_key="k"))
    if wire is RESPONSES:
        return OpenAIResponsesModel("gpt-5.2", provider=OpenAIProvider(base_url=server.url, api_key="k"))
    return AnthropicModel("claude-opus-4-8", provider=AnthropicProvider(base_url=server.root, api_key="k"))


def clerk(model: Model, capabilities: list[AbstractCapability[Any]]) -> Agent[Shop, str]:
    """The agent."""
    shelf = FunctionToolset[Shop](id="shelf")

    def order(isbn: str) -> str:
        """Order a book."""
        return f"ordered {isbn}"

    @shelf.tool
    def find(ctx: RunContext[Shop], title: str) -> str:
        """Find a book; then it can be ordered."""
        ctx.deps.stock = "Stock: 2 copies."
        if "order" not in shelf.tools:
            shelf.add_function(order)
        return f"{title} is on shelf 4"

    agent = Agent(
        model,
        name="clerk",
        deps_type=Shop,
        instructions=HOUSE_RULES,
        toolsets=[shelf],
        capabilities=[Budget(), *capabilities, Editor()],
        model_settings={"max_tokens": 1000},  # with many, the framework streams whatever it is asked for
    )

    @agent.instructions
    def now(ctx: RunContext[Shop]) -> str:
        return f"It is 10:{next(ctx.deps.minutes)}."

    @agent.instructions(name="limits")
    def limits() -> str:
        return "Never promise a refund."

    @agent.instructions(name="stock", on_change="append")
    def stock(ctx: RunContext[Shop]) -> str:
        return ctx.deps.stock

    return agent


def script(wire: Wire, *, stream: bool) -> list[Answer]:
    """What the server says to two runs of the agent: a call, a failure that the SDK tries again, a late tool."""
    return [
        wire.answer("I look.", ("c1", "find", '{"title":"Emma"}'), stream=stream),
        wire.failing(500, headers=SOON),
        wire.answer("", ("c2", "order", '{"isbn":"1"}'), stream=stream),
        wire.answer("It is ordered.", stream=stream),
        wire.answer("Good bye.", stream=stream),
    ]


async def play(agent: Agent[Shop, str], *, stream: bool) -> list[str]:
    """Two runs of one conversation; gives the answers."""
    shop, history, said = Shop(), list[ModelMessage](), list[str]()
    async with agent:  # closes the connections of its model behind it
        for prompt in ("Order Emma.", "Thank you."):
            reader = read_all if stream else None  # with a reader the framework streams
            result = await agent.run(prompt, deps=shop, message_history=history, event_stream_handler=reader)
            said.append(result.output)
            history = result.all_messages()
    return said


async def read_all(ctx: RunContext[Shop], events: AsyncIterable[object]) -> None:
    async for _ in events:
        pass
