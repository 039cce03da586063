"""The play: five turns with a scripted model, and before each but the first something changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final, TypeAlias

from foreword.agent.model_selection import ModelSelection, install_model_selection
from foreword.agent.models.registry import ModelAdapters
from foreword.agent.retry import RetryPolicy
from foreword.cli.demo.shop import RefundDesk, carrier
from foreword.compose.loading import open_deployment
from foreword.testing.scripted_model import Reply, ScriptedModel, call_tools
from foreword.tools.registry import ToolRegistry
from foreword.wire.chunks import ModelFailure, Usage
from foreword.wire.messages import UserMessage

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.compose.loading import App
    from foreword.session.log import Log
    from foreword.testing.scripted_model import Step

__all__ = ["STORY", "Played", "played"]


@dataclass(frozen=True, slots=True)
class Played:
    """A session that was played."""

    session: str
    sent: tuple[bytes, ...]  # what the model got, in the order in which it got it


Change: TypeAlias = "Callable[[App, Agent], Awaitable[None]]"


async def nothing(app: App, agent: Agent) -> None:
    """The first turn: all is as the file says."""


async def connect_carrier(app: App, agent: Agent) -> None:
    """A plugin is loaded late, and brings a tool."""
    await app.ctx.mount(carrier).ready()


async def switch_model(app: App, agent: Agent) -> None:
    """A complaint goes to the larger model."""
    install_model_selection(agent, ModelSelection("scripted:large"))


async def close_desk(app: App, agent: Agent) -> None:
    """A fact changes, and a tool is hidden from the agent."""
    app.ctx.require(RefundDesk).is_open = False
    agent.ctx.require(ToolRegistry).restrict(deny=["refund"])


async def compact(app: App, agent: Agent) -> None:
    """One message takes the place of the whole history."""
    said = "So far: one book of order 4711 was damaged, and its 24.90 EUR were refunded."
    agent.session.replace_history(0, len(agent.session.messages) - 1, UserMessage(said))


_OVERLOADED: Final = ModelFailure("too many requests at the moment", "overloaded", 529, transient=True)
_TURNS: Final[tuple[tuple[Change, str], ...]] = (
    (nothing, "Where is my order 4711?"),
    (connect_carrier, "Where is the parcel now?"),
    (switch_model, "One book is torn. I want the 24.90 EUR for it back."),
    (close_desk, "The second book is torn, too."),
    (compact, "What am I to do now?"),
)
_STEPS: Final[tuple[Step, ...]] = (
    _OVERLOADED,
    call_tools(find_order={"order": 4711}, usage=Usage(310, 18)),
    Reply("It was sent on Monday with Parcel Post.", usage=Usage(355, 12, 310)),
    call_tools(track_parcel={"order": 4711}, usage=Usage(430, 18, 140)),
    Reply("Customs in Bremen opened it, and damaged one book. I am sorry.", usage=Usage(480, 17, 430)),
    call_tools(refund={"order": 4711, "cents": 2490}, usage=Usage(540, 24, 0)),
    Reply("I have refunded 24.90 EUR.", usage=Usage(585, 10, 540)),
    Reply("The refund desk is closed now, so I cannot refund it today.", usage=Usage(560, 14, 70)),
    Reply("Please write again tomorrow, from 9:00 on.", usage=Usage(250, 11, 170)),
)
STORY: Final = (
    "find_order, at the second try",
    "answers",
    "track_parcel, a late tool",
    "answers",
    "refund, by another model",
    "answers",
    "a new fact, refund is masked",
    "compacted, facts told again",
)
"""What is worth a word about each step."""


async def played(log: Log) -> Played:
    """Play it, into a log; when this returns, the agent, its plugins and the model are gone."""
    model = ScriptedModel(_STEPS)
    with as_file(files("foreword.cli.demo")) as folder:
        async with open_deployment(folder / "foreword.yaml", environment={}, log=log) as app:
            app.ctx.require(ModelAdapters).register(model)
            agent = await app.agent("support", retry=RetryPolicy(first=0.0))
            for change, said in _TURNS:
                await change(app, agent)
                await agent.run(said)
            return Played(agent.id, tuple(model.requests))
