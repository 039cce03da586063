"""A recorder for agents of Pydantic AI: one line in the agent, and nothing of what it sends is changed.

    agent = Agent("openai-responses:gpt-5.2", instructions=…, capabilities=[Recorder("sqlite:foreword.db")])

It wraps the model, innermost, so it sees what all other capabilities made of a request. Where the model shows the HTTP
client that it sends with, the level is *wire*: the bytes are read, and each retry of the SDK is an attempt. Where it
shows none (a `FunctionModel`, a model over another library) the level is *assembly*: what the framework handed to the
model, one attempt a call.
"""

from __future__ import annotations

import copy
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from foreword.errors import MissingExtraError, NothingToRecordError
from foreword.integrations.book import Place
from foreword.integrations.caller import Caller
from foreword.integrations.exchange import Where
from foreword.integrations.http import Hooks, http_client_of
from foreword.integrations.recording import OnError, Recording
from foreword.integrations.told import Credits

try:
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel
except ModuleNotFoundError as missing:
    if missing.name != "pydantic_ai":
        raise
    raise MissingExtraError("the recorder for Pydantic AI", "pydantic-ai", "pydantic-ai-slim") from missing

from foreword.integrations.pydantic_ai_told import answered_by, credits_of, failed_by, sent_to

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from pydantic_ai import RunContext
    from pydantic_ai.capabilities.abstract import WrapRunHandler
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.settings import ModelSettings

    from foreword.integrations.book import Entry
    from foreword.integrations.told import Answered
    from foreword.session.events import TurnEndReason
    from foreword.session.ledger import Content
    from foreword.session.log import Log

__all__ = ["Recorder"]

_AGENT = "agent"  # what an agent without a name is called


class Recorder(AbstractCapability[Any]):
    """Writes down what an agent sends and is answered, and changes nothing of it.

    A session is the framework's conversation, a turn one run, a step one request. The session's id is that of the
    conversation; where that can be none, one that is made of it, the same in every run, and the label ``conversation``
    has the true one. While another process or run writes that conversation, a run has a session of its own with that
    label. Each request is durable before it is sent. What cannot be logged is told by the logger
    ``foreword.integrations`` and in `faults`, and is sent all the same.

    Args:
        log: the URL of a store, as in ``"sqlite:foreword.db"``, or a log that is open.
        content: how much of what is said is stored; see `foreword.session.open_log`. None for what the log does, or
            all of it.
        labels: of every session; each also has the label ``agent``.
        on_error: ``"raise"`` to have no request sent that is not in the log.

    Raises:
        ValueError: ``on_error`` is neither ``"warn"`` nor ``"raise"``.
    """

    def __init__(
        self,
        log: str | Log,
        *,
        content: Content | None = None,
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "warn",
    ) -> None:
        self.id, self.description, self.defer_loading = None, None, False
        self._recording = Recording(log, content=content, labels=labels, on_error=on_error)
        self._seen = _Seen(self._recording)
        self._agent = _AGENT
        self._place = Place()

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be logged, in words, the newest last."""
        return tuple(self._recording.faults)

    async def close(self) -> None:
        """Write what is left, let go of all sessions, and record nothing any more; a second time does nothing.

        It need not be called: a run lets go of its session when it ends.

        Raises:
            ExceptionGroup: what could not be written.
        """
        self._seen.close()
        await self._recording.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- what the framework calls --------------------------------------------------------------------------------------

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """No name: a recorder is given to an agent in code, and is no part of an agent's specification."""
        return None

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: it is to see what all others have made of a request."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> Recorder:
        """The recorder of one run: it knows its conversation and its agent."""
        mine = copy.copy(self)
        mine._agent = (None if ctx.agent is None else ctx.agent.name) or _AGENT
        mine._place = Place(ctx.conversation_id, {"agent": mine._agent})
        return mine

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """End the turn when the run ends, however it does."""
        reason: TurnEndReason = "aborted"
        try:
            result = await handler()
            reason = "completed"
        except Exception:
            reason = "error"
            raise
        finally:
            await self._recording.leave(self._place, reason)
        return result

    def get_wrapper_model(self, model: Model) -> Model | None:
        """The model, with a look at what goes in and comes out; as it is, once the recorder is closed."""
        return None if self._seen.is_closed else _Recorded(model, self)

    # -- for the model -------------------------------------------------------------------------------------------------

    def call(
        self,
        model: Model,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        asked: ModelRequestParameters,
    ) -> _Call:
        """A call of a model that is about to be made."""
        return _Call(self._recording, self._seen, self._place, self._agent, model, messages, settings, asked)


class _Recorded(WrapperModel):
    """A model whose requests are recorded."""

    def __init__(self, wrapped: Model, recorder: Recorder) -> None:
        super().__init__(wrapped)
        self._recorder = recorder

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call = self._recorder.call(self.wrapped, messages, model_settings, model_request_parameters)
        await call.begin()
        try:
            with call.under_way():
                response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        except BaseException as error:
            await call.failed(error)
            raise
        await call.answered(lambda: response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call = self._recorder.call(self.wrapped, messages, model_settings, model_request_parameters)
        await call.begin()
        stream: StreamedResponse | None = None
        try:
            async with AsyncExitStack() as stack:
                with call.under_way():
                    stream = await stack.enter_async_context(
                        self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
                    )
                yield stream
        except BaseException as error:
            await call.failed(error)
            raise
        await call.answered(stream.get)


class _Call:
    """One call of a model: what is known of it beside its bytes, and whether bytes were seen."""

    def __init__(
        self,
        recording: Recording,
        seen: _Seen,
        place: Place,
        agent: str,
        model: Model,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        asked: ModelRequestParameters,
    ) -> None:
        self._recording, self._seen, self._model = recording, seen, model
        self._request = messages, settings, asked
        self._credits = self._whose(agent)
        provider = None if isinstance(model, FallbackModel) else model.system
        self.where = Where(place, self._credits, provider)
        self.has_bytes = self._is_watched = False
        self._entry: Entry | None = None
        self._began = time.monotonic()

    async def begin(self) -> None:
        """See to it that the bytes of the call are seen; if they cannot be, log what is known of it.

        Raises:
            RecordingFailedError: it cannot be logged, and that is to be an error.
        """
        self._is_watched = self._seen.watch(self._model)
        if not self._is_watched:
            await self._log()

    @contextmanager
    def under_way(self) -> Generator[None]:
        """What is sent herein belongs to this call."""
        token = self._seen.call.set(self)
        try:
            yield
        finally:
            self._seen.call.reset(token)

    async def answered(self, response: Callable[[], ModelResponse]) -> None:
        """The call has a response."""
        await self._end(lambda: answered_by(response(), self._milliseconds()))

    async def failed(self, error: BaseException) -> None:
        """The call has none."""
        await self._end(lambda: failed_by(error, self._milliseconds()))

    def _whose(self, agent: str) -> Credits:
        messages, _, asked = self._request
        try:
            return credits_of(messages, asked, agent)
        except Exception as fault:  # the border: whatever is odd in a request is no reason not to send it
            self._recording.tell("cannot tell whose the parts of a request are", fault)
            return Credits(agent)

    async def _end(self, answered: Callable[[], Answered]) -> None:
        if self.has_bytes:
            return  # the exchange itself tells more
        if self._is_watched:  # it went another way than by the HTTP clients that are watched
            await self._log()
        if self._entry is None:
            return
        try:
            told = answered()
        except Exception as fault:  # the border
            self._recording.tell("cannot read an answer", fault)
            told = failed_by(fault, self._milliseconds())
        await self._recording.end(self._entry, told)

    async def _log(self) -> None:
        try:
            sent = sent_to(self._model, *self._request, self._credits)
        except Exception as fault:  # the border: whatever is wrong with a request is no reason not to send it
            self._recording.miss("cannot read a request", fault)
            return
        self._entry = await self._recording.begin(self.where.place, sent, Caller())

    def _milliseconds(self) -> int:
        return round((time.monotonic() - self._began) * 1000)


class _Seen:
    """The HTTP clients that a recorder watches, and the call that is under way in a task."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.is_closed = False
        self._hooks = weakref.WeakKeyDictionary[Any, weakref.ref[Hooks]]()  # the client itself keeps its hooks
        self.call = ContextVar[_Call | None]("the call of a recorded model", default=None)

    def watch(self, model: Model) -> bool:
        """Watch what a model sends with; False if there is nothing to be seen of that."""
        try:
            clients = [(_http_client(each), each.system) for each in _served_by(model)]
        except Exception as fault:  # the border: a model's properties are its own code
            self._recording.tell(f"cannot see what {type(model).__name__} sends with", fault)
            return False
        for client, system in clients:
            if client is not None and client not in self._hooks:
                self._hooks[client] = weakref.ref(Hooks(self._recording, client, partial(self._where, system)))
        return bool(clients) and all(client is not None for client, _ in clients)

    def close(self) -> None:
        """Watch nothing any more."""
        self.is_closed = True
        for ref in tuple(self._hooks.values()):
            hooks = ref()
            if hooks is not None:
                hooks.remove()
        self._hooks.clear()

    def _where(self, system: str) -> Where | None:
        call = self.call.get()
        if call is None:
            return None  # somebody else's request
        call.has_bytes = True
        return replace(call.where, provider=call.where.provider or system)


def _served_by(model: Model) -> Iterator[Model]:
    """The models that send for a model."""
    if isinstance(model, WrapperModel):
        yield from _served_by(model.wrapped)
    elif isinstance(model, FallbackModel):
        for each in model.models:
            yield from _served_by(each)
    else:
        yield model


def _http_client(model: Model) -> Any | None:
    """The HTTP client that a model shows; None if it shows none."""
    try:
        return http_client_of(getattr(model, "client", None))
    except NothingToRecordError:
        return None
