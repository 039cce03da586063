"""From contributions to a prompt, on one screen: plan ─▶ collect ─▶ order ─▶ transform ─▶ enforce ─▶ render.

Each stage is a module of that name. One `Run` is one assembly: what is in force is fixed when it is made, and nothing
of it is kept on the registry. The sync and the async ways through it differ in their awaits only. Where nobody gets to
see the assembly, as in most steps, none is made: the draft is rendered as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.prompt.asking import ask_together
from foreword.prompt.assembly import PromptAssembly
from foreword.prompt.collect import Collector, stop_if_cancelled
from foreword.prompt.enforce import enforce, enforce_untouched
from foreword.prompt.order import order_tools
from foreword.prompt.render import render_draft
from foreword.prompt.rendering import Rendering, render
from foreword.prompt.transform import Waterfall

if TYPE_CHECKING:
    from foreword.errors import EntryRef
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.collect import Question
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.draft import Draft
    from foreword.prompt.registry import Registry

__all__ = ["Run"]


class Run:
    """One assembly."""

    __slots__ = ("_collector", "_context", "_listeners", "_registry")

    def __init__(self, registry: Registry, scope: ScopeKey, context: AssembleContext) -> None:
        """Fix what is in force: the plan of the scope, the listeners, and which conditions hold."""
        self._registry, self._context = registry, context
        self._listeners = registry.assemble_listeners.about(scope)
        self._collector = Collector(registry, scope, registry.plan(scope), context)

    async def assemble(self) -> PromptAssembly:
        """Take all stages up to rendering."""
        draft = await self._collect()
        if not self._listeners:
            return self._assembled(draft)
        assembly = PromptAssembly.of(draft, draft.variables())
        waterfall = draft.waterfall = Waterfall(self._listeners, self._context, draft)
        return self._enforce(assembly, await waterfall.run(assembly))

    def assemble_sync(self) -> PromptAssembly:
        """The same without an event loop; only when nothing `needs_loop`."""
        return self._assembled(self._collect_sync())

    async def render(self) -> Rendering:
        """Take all stages."""
        if self._listeners:
            return render(await self.assemble())
        return self._rendered(await self._collect())

    def render_sync(self) -> Rendering:
        """The same without an event loop; only when nothing `needs_loop`."""
        return self._rendered(self._collect_sync())

    def needs_loop(self) -> EntryRef | None:
        """The first thing in force that needs an event loop; None if nothing does."""
        awaited = self._collector.async_entries()
        if awaited:
            return awaited[0][1].ref
        return self._listeners[0].ref if self._listeners else None

    def may_hang(self) -> bool:
        """Whether a provider with a timeout is in force, which may be left running."""
        return any(entry.timeout is not None for _, entry in self._collector.async_entries())

    async def _collect(self) -> Draft:
        questions = self._collector.ask()
        if questions:
            await ask_together(questions)
        return self._ordered(questions)

    def _collect_sync(self) -> Draft:
        return self._ordered(self._collector.ask())

    def _ordered(self, questions: list[Question]) -> Draft:
        draft = self._collector.settle(questions)
        order_tools(draft)
        stop_if_cancelled(self._context)
        return draft

    def _assembled(self, draft: Draft) -> PromptAssembly:
        assembly = PromptAssembly.of(draft, draft.variables())
        return self._enforce(assembly, assembly)

    def _rendered(self, draft: Draft) -> Rendering:
        if draft.plan.complete and draft.complete() is not None:
            return render(self._assembled(draft))
        enforce_untouched(draft)
        return Rendering(render_draft(draft), draft.ordered_tools, draft)

    @staticmethod
    def _enforce(drafted: PromptAssembly, result: PromptAssembly) -> PromptAssembly:
        draft = drafted.draft
        assert draft is not None  # noqa: S101 - `_draft` made it
        if result is not drafted:  # a listener's own, which it may keep: what is enforced happens to a copy
            variables, extras = dict(result.variables), dict(result.extras)
            result = PromptAssembly(result.sections, result.contexts, result.tools, variables, extras)
            result.draft = draft
        if draft.waterfall is not None:
            draft.waterfall.note_result(result)
        enforce(draft, result)
        return result
