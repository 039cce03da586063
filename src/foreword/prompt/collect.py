"""Stage 2, collect: ask the conditions, then the providers, and gather what fails.

Sync providers are asked in turn, async ones together; an answer takes its place by the fixed order (variables, tools,
sections, contexts), never by arrival. So do failures. Nothing here needs an event loop unless an async provider is in
force: `asking` is the only module that has one.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from foreword.errors import (
    AssemblyCancelledError,
    ForewordError,
    MultipleCompleteSectionsError,
    ProviderFailedError,
    ProviderFailure,
)
from foreword.prompt.contributions import Entry, Placeholder, Section
from foreword.prompt.draft import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.last_good import LastGood
    from foreword.prompt.plan import Plan
    from foreword.prompt.registry import Registry
    from foreword.prompt.running import Running

__all__ = ["Collector", "Question", "stop_if_cancelled"]

E = TypeVar("E", bound=Entry)


class Question:
    """A provider that is to be waited for, and what came of it."""

    __slots__ = ("answer", "context", "entry", "error", "running", "seconds", "stop", "task")

    def __init__(self, entry: Entry, context: AssembleContext, running: Running) -> None:
        self.entry = entry
        self.context = context
        self.running = running
        self.answer: object = None
        self.error: Exception | None = None
        self.stop: BaseException | None = None  # a cancellation or an exit: no failure of the provider
        self.seconds = 0.0
        self.task: object = None  # keeps a task of its own alive: an event loop has only weak references

    async def ask(self) -> Any:
        """What the provider answers, unchecked."""
        provider = self.entry.provider
        with self.running.asking(self):
            if self.entry.thread:
                return await self.running.threads.run(self, partial(provider.ask, self.context))
            return await provider.ask(self.context)

    def again(self) -> Question:
        """The same question, for another attempt."""
        return Question(self.entry, self.context, self.running)


class Collector:
    """Collects one draft: conditions when made, sync providers in `ask`, async answers in `settle`."""

    __slots__ = ("_agenda", "_failures", "draft")

    def __init__(self, registry: Registry, scope: ScopeKey, plan: Plan, context: AssembleContext) -> None:
        """Take the plan and ask every condition.

        Raises:
            MultipleCompleteSectionsError: more than one complete section is in force.
        """
        self.draft = draft = Draft(registry, scope, plan, context)
        self._agenda = plan.agenda_without_contexts if draft.suppressed else plan.agenda
        self._failures: dict[Entry, Exception] = {}
        if self._agenda.conditional:
            self._ask_conditions()
        if len(plan.complete) > 1:
            complete = [section for section in plan.complete if section not in draft.left_out]
            if len(complete) > 1:
                raise MultipleCompleteSectionsError([section.ref for section in complete])

    def async_entries(self) -> Sequence[Entry]:
        """The async providers that this step will ask."""
        return self._remaining(self._agenda.awaited)

    def ask(self) -> list[Question]:
        """Ask the sync providers; give back the async ones, to be asked together.

        Raises:
            AssemblyCancelledError: the context's signal is cancelled.
        """
        draft, agenda = self.draft, self._agenda
        stop_if_cancelled(draft.context)
        awaited = self.async_entries()
        start = perf_counter()
        self._ask_each(agenda.variables, draft.accept_value, awaited)
        self._ask_each(agenda.tools, draft.accept_tools, awaited)
        self._ask_each(agenda.texts, draft.accept_text, awaited)
        draft.seconds["sync providers"] = perf_counter() - start
        return [Question(entry, draft.context, draft.registry.running) for entry in awaited]

    def _ask_each(self, entries: tuple[E, ...], accept: Callable[[E, object], None], awaited: Sequence[Entry]) -> None:
        context = self.draft.context
        for entry in self._remaining(entries):
            if awaited and entry in awaited:
                continue
            provider = entry.provider
            call = provider.call
            try:
                if call is None:
                    accept(entry, provider.static)
                else:
                    accept(entry, call(context) if provider.takes_context else call())
            except Exception as error:  # a provider is somebody else's code; its failure is told with all others
                self._failures[entry] = error

    def settle(self, questions: list[Question]) -> Draft:
        """Take the async answers in, then deal with every failure.

        Raises:
            ProviderFailedError: all failures that nobody asked to skip, in the fixed order.
        """
        for question in questions:
            self.draft.seconds[str(question.entry.ref)] = question.seconds
            if question.error is not None:
                self._failures[question.entry] = question.error
                continue
            try:
                self.draft.accept(question.entry, question.answer)
            except Exception as error:  # looking at an answer may run somebody else's code, too
                self._failures[question.entry] = error
        if self._agenda.kept:
            self._keep_last_good()
        if self._failures:
            self._deal_with_failures()
        return self.draft

    def _keep_last_good(self) -> None:
        draft = self.draft
        for entry in self._remaining(self._agenda.kept):
            if entry.last_good is not None:
                try:
                    entry.last_good.keep(draft.scope, draft.context, draft.answer_of(entry))
                except TypeError as error:  # a value of the caller's that cannot be hashed: as if the provider failed
                    self._failures[entry] = error

    def _ask_conditions(self) -> None:
        for entry in self._agenda.conditional:
            try:
                wanted = entry.when is None or entry.when(self.draft.context)
            except Exception as error:  # a condition is somebody else's code, too
                self._failures[entry] = error
            else:
                if not wanted:
                    self.draft.leave_out(entry, "when")

    def _remaining(self, entries: tuple[E, ...]) -> Sequence[E]:
        """Those that are neither left out nor known to fail."""
        left_out, failures = self.draft.left_out, self._failures
        if not (left_out or failures):
            return entries
        return [entry for entry in entries if entry not in left_out and entry not in failures]

    def _deal_with_failures(self) -> None:
        failed = [(entry, self._failures[entry]) for entry in self._agenda.entries if entry in self._failures]
        fatal = [(entry, error) for entry, error in failed if not self._excuse(entry, error)]
        if not fatal:
            return
        errors = [error for _, error in fatal]
        cause = errors[0] if len(errors) == 1 else ExceptionGroup("several providers of the prompt failed", errors)
        failures = [_failure(entry, error, may_skip=not self._must_not_fail(entry)) for entry, error in fatal]
        raise ProviderFailedError(failures) from cause

    def _excuse(self, entry: Entry, error: Exception) -> bool:
        """Do what the entry's ``on_error`` says; False if it says to fail."""
        if entry.on_error == "fail" or self._must_not_fail(entry):
            return False
        why = f"skipped: {type(error).__name__}: {error}"
        if entry.last_good is not None:
            return self._reuse(entry, entry.last_good, why)
        if isinstance(entry.on_error, Placeholder):
            self.draft.put_placeholder(entry, entry.on_error.text, why)
        else:
            self.draft.leave_out(entry, why)
        return True

    def _reuse(self, entry: Entry, last_good: LastGood, why: str) -> bool:
        draft = self.draft
        try:
            found = last_good.reuse(draft.scope, draft.context)
        except TypeError:  # see `_keep_last_good`
            return False
        if found is None:
            return False
        draft.put_again(entry, found[0], why)
        return True

    def _must_not_fail(self, entry: Entry) -> bool:
        return isinstance(entry, Section) and (entry.complete or entry.name in self.draft.plan.protected_sections)


def stop_if_cancelled(context: AssembleContext) -> None:
    """Look at the context's signal.

    Raises:
        AssemblyCancelledError: it is cancelled.
    """
    if context.signal is not None and context.signal.reason is not None:
        raise AssemblyCancelledError(context.signal.reason)


def _failure(entry: Entry, error: Exception, *, may_skip: bool) -> ProviderFailure:
    kind = error.kind if isinstance(error, ForewordError) else "provider_failed"
    return ProviderFailure(entry.ref, kind, type(error).__name__, str(error), may_skip)
