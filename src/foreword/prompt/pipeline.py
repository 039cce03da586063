"""From contributions to a prompt, on one screen: plan ─▶ collect ─▶ order ─▶ transform ─▶ enforce ─▶ render.

Each stage is a module of that name. One `Run` is one assembly: what is in force is fixed when it is made, and nothing
of it is kept on the registry. The two ways through it differ in their awaits only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.prompt.asking import ask_together
from foreword.prompt.assembly import PromptAssembly
from foreword.prompt.collect import Collector, stop_if_cancelled
from foreword.prompt.enforce import enforce
from foreword.prompt.order import order_tools
from foreword.prompt.transform import Waterfall

if TYPE_CHECKING:
    from foreword.errors import EntryRef
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.collect import Question
    from foreword.prompt.context import AssembleContext
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
        questions = self._collector.ask()
        if questions:
            await ask_together(questions)
        assembly = self._draft(questions)
        if self._listeners and assembly.draft is not None:
            waterfall = assembly.draft.waterfall = Waterfall(self._listeners, self._context, assembly.draft)
            return self._enforce(assembly, await waterfall.run(assembly))
        return self._enforce(assembly, assembly)

    def assemble_sync(self) -> PromptAssembly:
        """The same without an event loop; only when nothing `needs_loop`."""
        assembly = self._draft(self._collector.ask())
        return self._enforce(assembly, assembly)

    def needs_loop(self) -> EntryRef | None:
        """The first thing in force that needs an event loop; None if nothing does."""
        if awaited := self._collector.async_entries():
            return awaited[0].ref
        return self._listeners[0].ref if self._listeners else None

    def may_hang(self) -> bool:
        """Whether a provider with a timeout is in force, which may be left running."""
        return any(entry.timeout is not None for entry in self._collector.async_entries())

    def _draft(self, questions: list[Question]) -> PromptAssembly:
        draft = self._collector.settle(questions)
        order_tools(draft)
        stop_if_cancelled(self._context)
        return PromptAssembly.of(draft, draft.values)

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
