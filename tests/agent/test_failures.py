"""What goes wrong ends the turn, in words and in the log; the model is asked nothing, and the next turn works."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.agent.support import Stage, WatchedStore, kinds, logged, said, stage

from foreword import (
    AGENT_ERROR,
    AGENT_PRE_STEP,
    AGENT_REQUEST,
    AGENT_REQUEST_ERROR,
    AGENT_TURN_STOPPING,
    SYSTEM_PROMPT_ASSEMBLE,
    Agent,
    Enter,
    Event,
    ForewordError,
    ListenerError,
    NoModelError,
    ProviderFailedError,
    Reject,
    Retry,
    TurnFailed,
    UnknownVariableError,
    ValuelessVariableError,
    WrongAnswerError,
)
from foreword.agent.failure import LONGEST, in_words
from foreword.errors import FlushFailedError, ModelFailedError, UnknownProviderError
from foreword.session import HeaderWritten, TurnEnd, UserSaid
from foreword.testing import call_tools
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import UserMessage

pytestmark = pytest.mark.anyio

NO_STEP = ["TurnStart", "TurnEnd"]


class Heard:
    """The errors that were told, each with whether ``turn/end`` was logged by then."""

    def __init__(self, play: Stage) -> None:
        self.errors: list[TurnFailed] = []
        self.too_late = False
        play.ctx.on(AGENT_ERROR, self.hear)

    def hear(self, failed: TurnFailed) -> None:
        self.errors.append(failed)
        self.too_late |= isinstance(logged(failed.agent)[-1], TurnEnd)


async def fails(play: Stage, agent: Agent, error: type[BaseException], match: str | None = None) -> list[str]:
    """A turn fails, tells its error once and in time, and sends nothing; what it logged."""
    heard, requests, before = Heard(play), len(play.model.requests), len(agent.session.events)
    with pytest.raises(error, match=match) as caught:
        await agent.run("Hi")
    (told,) = heard.errors
    assert told.error is caught.value
    assert not heard.too_late
    assert len(play.model.requests) == requests
    return kinds(agent)[before:]


async def works(agent: Agent) -> None:
    """The next turn works."""
    assert (await agent.run("Hi again")).reason == "completed"


@pytest.mark.parametrize("kind", ["section", "context"])
@pytest.mark.parametrize(
    ("text", "error"),
    [("{{nobody}}", UnknownVariableError), ("{{cwd}}", ValuelessVariableError)],
    ids=["unknown", "valueless"],
)
async def test_a_text_with_a_bad_variable(kind: str, text: str, error: type[Exception]) -> None:
    """Section and context alike: both are rendered before anything is logged, so no half step stays behind."""
    async with stage("Fine.") as play:
        bad = getattr(play.prompt, kind)("bad", text, order=1)
        agent = await play.agent()
        assert await fails(play, agent, error) == NO_STEP
        bad.close()
        await works(agent)
        assert said(agent) == ["Hi again"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_provider_that_raises(is_async: bool) -> None:
    """No step, no request, one agent/error before ``turn/end``; the log has the message of the provider's error."""
    async with stage("Fine.") as play:

        def broken() -> str:
            raise LookupError("the shop is closed")

        async def broken_async() -> str:
            return broken()

        bad = play.prompt.section("bad", broken_async if is_async else broken, order=1)
        agent = await play.agent()
        assert await fails(play, agent, ProviderFailedError, "the shop is closed") == NO_STEP
        end = logged(agent)[-1]
        assert (end.reason, end.code) == ("error", "provider_failed")
        assert "the shop is closed" in end.detail
        bad.close()
        await works(agent)


async def test_an_assemble_listener_that_raises() -> None:
    """Likewise."""
    async with stage("Fine.") as play:
        agent = await play.agent()

        async def broken(*_: Any) -> Any:
            raise LookupError("no")

        listening = agent.ctx.on(SYSTEM_PROMPT_ASSEMBLE, broken)
        assert await fails(play, agent, ListenerError) == NO_STEP
        listening.close()
        await works(agent)


@pytest.mark.parametrize(
    ("event", "requests", "last"),
    [
        (AGENT_PRE_STEP, 0, ["TurnStart", "TurnEnd"]),
        (AGENT_REQUEST, 0, ["UserSaid", "StepEnd", "TurnEnd"]),
        (AGENT_REQUEST_ERROR, 1, ["RequestEnded", "StepEnd", "TurnEnd"]),
        (AGENT_TURN_STOPPING, 1, ["AssistantSaid", "StepEnd", "TurnEnd"]),
    ],
    ids=lambda each: each.name if isinstance(each, Event) else None,
)
async def test_a_listener_that_raises(event: Event[..., Any], requests: int, last: list[str]) -> None:
    """It fails the turn with its own error, and the log is closed whatever was open."""
    answer: Any = ModelFailure("overloaded", "overloaded", transient=True) if event is AGENT_REQUEST_ERROR else "Fine."
    async with stage(answer, "Fine.") as play:
        agent = await play.agent()
        heard = Heard(play)

        async def broken(*_: Any) -> Any:
            raise LookupError("no")

        listening = agent.ctx.on(event, broken)
        with pytest.raises(LookupError, match="no"):
            await agent.run("Hi")
        assert [type(each.error) for each in heard.errors] == [LookupError]
        assert len(play.model.requests) == requests
        assert kinds(agent)[-len(last) :] == last
        listening.close()
        await works(agent)


@pytest.mark.parametrize("event", [AGENT_REQUEST, AGENT_REQUEST_ERROR], ids=lambda event: event.name)
async def test_a_listener_that_answers_wrongly(event: Event[..., Any]) -> None:
    """The error says what it must give."""
    async with stage(ModelFailure("overloaded", "overloaded")) as play:
        agent = await play.agent()

        async def wrong(*_: Any) -> Any:
            return "again"

        agent.ctx.on(event, wrong)
        with pytest.raises(WrongAnswerError, match=f"a listener of {event.name} gave a str; it must give"):
            await agent.run("Hi")


async def test_a_listener_of_errors_that_raises() -> None:
    """It is logged, and disturbs nobody: the caller gets the first error."""
    async with stage() as play:
        agent = await play.agent(model=None)

        def broken(failed: TurnFailed) -> None:
            raise LookupError("no")

        play.ctx.on(AGENT_ERROR, broken)
        assert "TurnEnd" in await fails(play, agent, NoModelError)


async def test_nobody_serves_the_provider() -> None:
    """The step is closed, without a header; an adapter that comes later is used by the next turn."""
    async with stage("Fine.") as play:
        agent = await play.agent(model="openia:gpt-5")
        assert await fails(play, agent, UnknownProviderError, 'provider "openia"') == [
            "TurnStart", "StepStart", "UserSaid", "StepEnd", "TurnEnd"
        ]  # fmt: skip
        assert not logged(agent, HeaderWritten)


async def test_a_failure_of_the_provider() -> None:
    """Nothing of a failed answer joins the history; the error carries the facts, and so does the log."""
    failure = ModelFailure("no such model", "not_found", 404)
    async with stage(failure, "Fine.") as play:
        agent = await play.agent()
        with pytest.raises(ModelFailedError, match="no such model") as caught:
            await agent.run("Hi")
        assert (caught.value.code, caught.value.status) == ("not_found", 404)
        assert kinds(agent)[-4:] == ["RequestAttempted", "RequestEnded", "StepEnd", "TurnEnd"]
        assert logged(agent)[-3].failure == failure
        await works(agent)
        assert said(agent) == ["Hi", "Hi again"]


async def test_what_a_guard_takes_out() -> None:
    """What others' code raised goes through the kernel's guard before it is logged, told or raised."""

    def guard(name: str, phase: str, error: BaseException) -> BaseException:
        return RuntimeError(f"{phase} of {name}") if "s3cret" in str(error) else error

    def broken(*told: Any) -> str:
        raise LookupError("s3cret")

    async with stage(broken, options={"guard": guard}) as play:
        agent = await play.agent()
        section = play.prompt.section("bad", broken, order=1)
        heard = Heard(play)
        with pytest.raises(ProviderFailedError, match="raised RuntimeError: section bad of root"):
            await agent.run("Hi")
        section.close()
        with pytest.raises(RuntimeError, match="turn of reviewer"):
            await agent.run("Hi")
        assert str(heard.errors[-1].error) == logged(agent)[-1].detail == "turn of reviewer"
        assert "s3cret" not in repr([heard.errors, logged(agent)])


async def test_an_adapter_that_raises() -> None:
    """A fault of the adapter is no failure of the provider: nobody is asked whether to try again."""
    asked: list[Any] = []

    def broken(request: Any) -> Any:
        if len(request.messages) == 1:
            raise LookupError("no")
        return "Fine."

    async with stage(broken) as play:
        agent = await play.agent()

        async def ask(failed: Any, call_next: Any) -> Any:
            asked.append(failed)
            return await call_next()

        agent.ctx.on(AGENT_REQUEST_ERROR, ask)
        with pytest.raises(LookupError):
            await agent.run("Hi")
        assert not asked
        ended = logged(agent)[-3]
        assert (ended.finish, ended.failure.message) == ("error", "no")
        await works(agent)


@pytest.mark.parametrize("at", ["dispatch", "tool", "end"])
async def test_what_cannot_be_made_durable_is_not_done(at: str) -> None:
    """A flush that fails: no request is sent, no tool runs, and a turn that cannot be stored is no completed one."""
    store, ran = WatchedStore(), []

    def answer(request: Any) -> Any:
        store.refuses = at != "dispatch" and len(request.messages) == 1
        return call_tools(note={}) if at == "tool" and store.refuses else "Fine."

    async with stage(answer, store=store) as play:

        @play.tools.register
        def note() -> str:
            """Note."""
            ran.append(1)
            return "noted"

        agent = await play.agent()
        heard = Heard(play)
        store.refuses = at == "dispatch"
        with pytest.raises(FlushFailedError, match="the disk is full"):
            await agent.run("Hi")
        assert len(heard.errors) == 1
        assert len(play.model.requests) == (0 if at == "dispatch" else 1)
        assert not ran
        assert kinds(agent)[-1] == "TurnEnd"
        store.refuses = False
        await works(agent)


class MuteError(Exception):
    """An error whose words cannot be had."""

    def __str__(self) -> str:
        raise LookupError


async def test_errors_in_words() -> None:
    """The words of an error hold those of its causes and of a group's members, once, and never too many."""
    outer, inner = KeyError("outer"), ValueError("inner")
    outer.__cause__ = inner
    assert in_words(outer) == "'outer': inner"
    assert in_words(ExceptionGroup("both", [OSError("a"), RuntimeError()])) == "both [a; RuntimeError]"
    inner.__cause__ = inner
    assert in_words(inner) == "inner"
    assert in_words(ValueError("\ud800")) == "\\ud800"
    assert len(in_words(ValueError("x" * 99_999))) == LONGEST
    assert in_words(MuteError()) == "MuteError"


async def test_a_provider_that_hangs() -> None:
    """It holds up the turn until that is cancelled; the next turn works."""
    async with stage("Fine.") as play:
        waiting = anyio.Event()

        async def hang() -> str:
            waiting.set()
            await anyio.sleep_forever()
            return ""

        bad = play.prompt.section("bad", hang, order=1)
        agent = await play.agent()
        turn = agent.run("Hi")
        await waiting.wait()
        agent.cancel()
        assert (await turn).reason == "aborted"
        bad.close()
        await works(agent)


class UnspellableError(ForewordError):
    """An error of somebody else's, whose kind no log can hold."""

    kind = "\ud800"


async def test_an_end_that_no_log_can_hold() -> None:
    """Another one is logged in its place, so the turn is closed; the caller gets what failed, with a note."""
    async with stage("Fine.") as play:
        agent = await play.agent()

        async def broken(*told: Any) -> Any:
            raise UnspellableError("no")

        listening = agent.ctx.on(AGENT_PRE_STEP, broken)
        with pytest.raises(UnspellableError, match="no") as caught:
            await agent.run("Hi")
        assert "refuses turn/end" in caught.value.__notes__[0]
        assert kinds(agent)[-2:] == NO_STEP
        assert (logged(agent)[-1].reason, logged(agent)[-1].code) == ("error", "event_refused")
        listening.close()
        await works(agent)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Reject(5), "Reject is a string, not an int"),  # type: ignore[arg-type]
        (lambda: Reject("\ud800"), "half a surrogate pair"),
        (lambda: Enter(None), "Enter takes a tuple of UserSaid, not None"),  # type: ignore[arg-type]
        (lambda: Enter("hello"), "Enter takes a tuple of UserSaid, not a str"),  # type: ignore[arg-type]
        (lambda: Enter(("hello",)), "each message of Enter is a UserSaid, not a str"),  # type: ignore[arg-type]
        (lambda: Retry("1"), "a number of seconds, not for a str"),  # type: ignore[arg-type]
        (lambda: Retry(after=True), "a number of seconds, not for a bool"),
        (lambda: Retry(-5), "from 0 up, not for -5"),
        (lambda: Retry(float("nan")), "from 0 up, not for nan"),
        (lambda: Retry(float("inf")), "from 0 up, not for inf"),
    ],
)
def test_answers_that_are_none(make: Callable[[], object], match: str) -> None:
    """They are refused where a listener makes them, so the trace of the error leads to its line."""
    with pytest.raises((TypeError, ValueError), match=match):
        make()


def test_messages_of_enter_and_reasons_of_reject_are_plain() -> None:
    """Any iterable of messages will do, and so will a subclass of str."""
    said = UserSaid(UserMessage("Hi"))
    assert Enter(each for each in [said]).messages == (said,)  # type: ignore[arg-type]
    assert type(Reject(Subclass("no")).reason) is str


class Subclass(str):
    """No plain string."""

    __slots__ = ()


async def test_a_text_that_is_no_plain_string() -> None:
    """It is told as what it holds, whether it begins a turn or waits for one."""
    async with stage("Fine.") as play:
        agent = await play.agent()
        agent.inject(Subclass("First"))
        await agent.run(Subclass("Hi"))
        assert said(agent) == ["First", "Hi"]
        assert {type(each) for each in said(agent)} == {str}
