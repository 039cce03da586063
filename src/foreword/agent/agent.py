"""An agent: one model at work on one session, turn after turn.

`create_agent` makes one (`creation`); a turn of it is in `loop`, a step of that in `step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.agent.inbox import Inbox
from foreword.agent.loop import run_turn
from foreword.agent.run import Run
from foreword.agent.turn import Feed, Turn
from foreword.errors import AgentBusyError, InactiveContextError, MissingServiceError, SessionInUseError
from foreword.jsonvalue import freeze
from foreword.kernel.fiber import PluginFiber
from foreword.kernel.scope import ScopeKey
from foreword.session.events import RUNTIME_CONTEXT, TurnStart, UserSaid
from foreword.wire.messages import UserMessage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from foreword.agent.creation import SetUp
    from foreword.agent.live import LiveAgents
    from foreword.agent.model_selection import ModelSelection
    from foreword.agent.terms import Terms
    from foreword.kernel.context import Context
    from foreword.prompt.context import ContextKey
    from foreword.session.events import MessageSource
    from foreword.session.session import Session
    from foreword.tools.masks import ToolMask
    from foreword.wire.request import ModelConfig

__all__ = ["Agent"]


class Agent(ScopeKey):
    """An agent. It is its own scope: what is registered through its `ctx` is seen by this agent alone.

    `create_agent` and `spawn` make agents.

    Attributes:
        name: for people, errors and traces; two agents may have the same.
        terms: what it was made with.
        ctx: the context in its scope. What is registered there goes with the agent.
        outfit: the plugin in its scope that registers its persona and its mask.
        turn: the turn that runs; None while it is idle.
        children: the agents that it has spawned and that are still there.
        inbox: what waits for the next step.
        selections: the model selections that are installed, the one that counts last.
        has_written_header: whether this object has logged a header already.
    """

    __slots__ = (
        "_holder",
        "_others",
        "_providers",
        "_session",
        "_stopping",
        "children",
        "ctx",
        "has_written_header",
        "inbox",
        "outfit",
        "selections",
        "terms",
        "turn",
    )

    ctx: Context
    outfit: PluginFiber

    def __init__(self, name: str, terms: Terms, ctx: Context, others: LiveAgents) -> None:
        super().__init__(name)
        self.terms = terms
        self.turn: Turn | None = None
        self.children: list[Agent] = []
        self.inbox = Inbox()
        self.selections: list[ModelSelection] = []
        self.has_written_header = False
        self._session: Session | None = None
        self._others = others
        self._providers: list[PluginFiber] = []  # of what its outfit was registered with last
        self._stopping = False
        self._holder = ctx.scope(f"agent {name}")  # undoes in this order: `stop`, all below `ctx`, `_leave`
        self._holder.defer(self._leave)
        self.ctx = self._holder.scope(self, terms.scope)

    @property
    def id(self) -> str:
        """The id of its session."""
        return self.session.id

    @property
    def session(self) -> Session:
        """What it was told, asked and answered.

        Raises:
            InactiveContextError: it is being set up; its session comes after that.
        """
        if self._session is None:
            raise InactiveContextError(f"agent {self.name} (being set up)", "its session is there when it is published")
        return self._session

    @property
    def model(self) -> ModelConfig | None:
        """The model that it was made with; None for one that is always selected."""
        return self.terms.model

    @property
    def values(self) -> Mapping[ContextKey[Any], object]:
        """What the providers of its prompt get in their context."""
        return self.terms.values

    @property
    def delegator(self) -> Agent | None:
        """The agent that has spawned it; None for nobody."""
        return self.terms.delegator

    @property
    def depth(self) -> int:
        """How many agents stand above it: 0 for one that nobody has spawned."""
        return 0 if self.delegator is None else self.delegator.depth + 1

    @property
    def active(self) -> bool:
        """Whether it can run."""
        return self._session is not None and not self._stopping and self.ctx.active

    # -- running -------------------------------------------------------------------------------------------------------

    def run(self, text: str, *, source: MessageSource | None = None) -> Turn:
        """Begin a turn. It takes what waits in the inbox and this text, and logs its ``turn/start`` at once.

        Args:
            text: what the model is told.
            source: who says it, if it is not the user.

        Returns:
            The turn, which runs by itself in a task of the kernel: ``async with`` it, iterate over it, or await it.

        Raises:
            AgentBusyError: a turn of this agent runs.
            InactiveContextError: the agent was disposed, or its kernel does not run.
            NotJsonError, ValueError: no log could hold the text, or the source is the loop's own.
            EventRefusedError: the session does not take another turn now.
            WrongThreadError: this is not the kernel's thread.
        """
        said = _said(text, source)
        root = self.ctx.root
        root.check_thread("running a turn")
        self._check_active("run a turn of another one")
        root.check_running()
        if self.turn is not None:
            raise AgentBusyError(self.name, self.turn.number)
        number = self.session.turn + 1
        self.session.append(TurnStart(number))
        feed = Feed()
        turn = self.turn = Turn(self, number, feed)
        turn.signal.on_cancel(self._cancel_children)
        run = Run(turn, feed, (*self.inbox.take(), said))
        root.start(lambda: self._in_task(run))
        return turn

    def inject(self, text: str, *, source: MessageSource | None = None) -> None:
        """Tell the model something with the next step: of the turn that runs, which goes on for it, or of the next one.

        Raises:
            InactiveContextError: the agent was disposed.
            NotJsonError, ValueError: no log could hold the text, or the source is the loop's own.
        """
        said = _said(text, source)
        self._check_active("tell another one")
        self.inbox.put(said)

    def cancel(self, cause: str = "user") -> None:
        """Cancel the turn that runs, and those of the agents that it has spawned; without one nothing happens.

        Any thread may. The first cause stands.

        Args:
            cause: ``"user"``, or in a word who else wants it.
        """
        turn = self.turn
        if turn is not None:
            turn.cancel(cause)

    def _cancel_children(self) -> None:
        for child in list(self.children):
            child.cancel("parent")

    async def _in_task(self, run: Run) -> None:
        import anyio

        try:
            await run_turn(run)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as stop:  # an interrupt or exit that reached this task: the kernel is left because of it
            self.ctx.root.heed(stop)
        finally:
            run.gone()

    # -- coming and going ----------------------------------------------------------------------------------------------

    async def spawn(
        self,
        name: str,
        *,
        persona: str | Path | None = None,
        tools: ToolMask | None = None,
        model: str | ModelConfig | None = None,
        values: Mapping[ContextKey[Any], object] | None = None,
        labels: Mapping[str, str] | None = None,
        setup: SetUp | None = None,
    ) -> Agent:
        """Make an agent that works for this one, with a session of its own in the same log.

        It stands below what this one stands below, not below this one: it sees neither this one's own sections nor its
        mask. It is told in a runtime context whose it is. It goes with this agent, and a cancellation of this one's
        turn cancels its turn.

        Args:
            name: of the child.
            persona: its persona, a template; None for the deployment's. One that a model wrote is no template: have
                ``setup`` register it with ``verbatim=True``.
            tools: which of the tools it inherits it may see.
            model: None for this one's: the one that is selected now, if a `ModelSelection` selects one.
            values: what is added to this one's.
            labels: what is added to this one's.
            setup: see `create_agent`.

        Raises:
            InactiveContextError: this agent was disposed.
            Exception: as `create_agent`; nothing is left of the child then.
        """
        from foreword.agent.creation import spawn_agent  # here, since making agents takes all the rest
        from foreword.kernel.source import caller, calling_line

        self._check_active("spawn it from another one")
        source = calling_line(caller(1))
        return await spawn_agent(
            self, name, source, persona=persona, tools=tools, model=model, values=values, labels=labels, setup=setup
        )

    async def settled(self) -> None:
        """Wait until what it has of its own is registered, also anew while the prompt or the tools are reloaded.

        Raises:
            MissingServiceError: nobody provides the prompt, or the tools that it has a mask for.
            InactiveContextError: the agent was disposed.
            PluginError: it cannot be registered, or who provided the prompt or the tools has failed.
        """
        outfit = await self.outfit.ready()
        for provider in self._providers if outfit.missing else ():
            await provider.ready()
            await outfit.ready()
        if outfit.missing:
            provided = sorted(key.__qualname__ for key in self.ctx.root.services.provided())
            raise MissingServiceError(", ".join(outfit.missing), self.name, provided)
        self._providers = [each for each in outfit.providers if isinstance(each, PluginFiber)]

    def publish(self, session: Session) -> None:
        """Give it its session and let others see it; done once, by `create_agent`.

        Raises:
            SessionInUseError: another agent of this kernel has the session.
            InactiveContextError: whoever was to have the agent has gone. Nothing was changed, whatever was raised.
        """
        holder = self._others.published.get(session.id)
        if holder is not None:
            raise SessionInUseError(session.id, holder.name)
        self._holder.defer(self.stop)
        self._session = session
        self._others.published[session.id] = self
        if self.delegator is not None:
            self.delegator.children.append(self)

    async def stop(self) -> None:
        """Let nothing begin any more, cancel what runs, and wait for its end; the first half of `dispose`."""
        self._stopping = True
        while self.turn is not None:
            self.turn.cancel("disposed")
            await self.turn.over()

    async def dispose(self) -> None:
        """Cancel what runs, wait for its end, undo all that was registered for it, and let go of its session.

        Everybody who calls waits for the one disposal. Called in a turn of its own, it ends that turn.

        Raises:
            BaseExceptionGroup: undos that raised; all of them were run.
        """
        await self._holder.dispose()

    async def _leave(self) -> None:
        """The last thing that an agent does: let go of its session, and of the others."""
        try:
            if self._session is not None:
                del self._others.published[self.id]
                if self.delegator is not None:
                    self.delegator.children.remove(self)
                await self._session.close()
        finally:
            await self._others.leave()

    def _check_active(self, way_out: str) -> None:
        if not self.active:
            state = "being set up" if self._session is None else "disposed"
            raise InactiveContextError(f"agent {self.name} ({state})", way_out)

    def __repr__(self) -> str:
        if self._session is None:
            return f"<Agent {self.name}, being set up>"
        state = "disposed" if not self.active else "idle" if self.turn is None else f"in turn {self.turn.number}"
        return f"<Agent {self.name}, session {self.id}: {state}>"


def _said(text: str, source: MessageSource | None) -> UserSaid:
    """A message for the model, checked before anything is logged."""
    plain = freeze(text)  # of a subclass, what it holds
    if not isinstance(plain, str):
        raise TypeError(f"a turn begins with a text, not {text!r}")
    if source is not None and source.kind == RUNTIME_CONTEXT:
        raise ValueError(f'messages with the source "{RUNTIME_CONTEXT}" are written by the loop; register a context')
    return UserSaid(UserMessage(plain), source)
