"""Stage 2, collect: ask the conditions, then the providers, and gather what fails.

Sync providers are asked in turn, async ones together; an answer takes its place by the fixed order (variables, tools,
sections, contexts), never by arrival. So do failures. What was answered as the baseline has it needs no second look;
the rest is held to what an answer must be. Nothing here needs an event loop unless an async provider is in force:
`asking` is the only module that has one.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from foreword.errors import (
    AssemblyCancelledError,
    ForewordError,
    MultipleCompleteSectionsError,
    ProviderFailedError,
    ProviderFailure,
    message_of,
    words_of,
)
from foreword.prompt.agenda import UNASKED
from foreword.prompt.baseline import UNSEEN, VOLATILE
from foreword.prompt.contributions import Entry, Placeholder, Section, ToolSource
from foreword.prompt.draft import Draft
from foreword.prompt.text import is_unawaited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.agenda import Place
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.last_good import LastGood
    from foreword.prompt.plan import Plan
    from foreword.prompt.registry import Registry
    from foreword.prompt.running import Running

__all__ = ["Collector", "Question", "stop_if_cancelled"]


class Question:
    """A provider that is to be waited for, and what came of it."""

    __slots__ = ("answer", "context", "entry", "error", "place", "running", "seconds", "stop", "task")

    def __init__(self, entry: Entry, context: AssembleContext, running: Running, place: int = -1) -> None:
        self.entry = entry
        self.place = place  # in the agenda's row; -1 for a question that is in none
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
        return Question(self.entry, self.context, self.running, self.place)


class Collector:
    """Collects one draft: conditions when made, sync providers in `ask`, async answers in `settle`."""

    __slots__ = ("_agenda", "_answers", "_failures", "draft")

    def __init__(self, registry: Registry, scope: ScopeKey, plan: Plan, context: AssembleContext) -> None:
        """Take the plan and ask every condition.

        Raises:
            MultipleCompleteSectionsError: more than one complete section is in force.
        """
        self.draft = draft = Draft(registry, scope, plan, context)
        self._agenda = plan.agenda
        self._answers: list[tuple[int, object]] = []  # those that the baseline does not have, by their places
        self._failures: dict[Entry, Exception] = {}
        if self._agenda.conditional:
            self._ask_conditions()
        if len(plan.complete) > 1:
            complete = [section for section in plan.complete if section not in draft.left_out]
            if len(complete) > 1:
                raise MultipleCompleteSectionsError([section.ref for section in complete])

    def async_entries(self) -> Sequence[Place]:
        """The async providers that this step will ask."""
        awaited = self._agenda.awaited
        return self._remaining(awaited) if awaited else ()

    def ask(self) -> list[Question]:
        """Ask the sync providers; give back the async ones, to be asked together.

        Raises:
            AssemblyCancelledError: the context's signal is cancelled.
        """
        draft = self.draft
        stop_if_cancelled(draft.context)
        awaited = self.async_entries()
        start = perf_counter()
        self._ask_row(awaited)
        draft.seconds["sync providers"] = perf_counter() - start
        return [Question(entry, draft.context, draft.registry.running, at) for at, entry in awaited]

    def _ask_row(self, awaited: Sequence[Place]) -> None:
        """Call everybody, and keep what the baseline does not have. The loop that every step spends its time in."""
        draft, agenda, keep = self.draft, self._agenda, self._answers.append
        context = draft.context
        calls = agenda.row(self._skipped(awaited) if awaited or draft.left_out or self._failures else ())
        noted = draft.baseline.answers
        if agenda.instead or len(calls) > len(noted):
            noted = noted + [VOLATILE] * (len(calls) - len(noted))
            for at, _ in agenda.instead:  # what is noted there was answered by somebody else
                noted[at] = VOLATILE
        at = -1  # counted by hand, since `enumerate` would cost every provider a tenth of its time
        for (call, takes_context), last in zip(calls, noted, strict=True):
            at += 1
            try:
                answer = call(context) if takes_context else call()
            except Exception as error:  # a provider is somebody else's code; its failure is told with all others
                self._failures[self._asked_at(at)] = error
                answer = UNASKED
            if answer is not last:
                keep((at, answer))

    def _skipped(self, awaited: Sequence[Place]) -> list[int]:
        """The places at which nobody is to be called: left out, failed already, or to be waited for."""
        left_out, failures = self.draft.left_out, self._failures
        passed = [at for at, entry in self._agenda.conditional if entry in left_out or entry in failures]
        return [at for at, _ in awaited] + passed

    def settle(self, questions: list[Question]) -> Draft:
        """Take the answers in, then deal with every failure.

        Raises:
            ProviderFailedError: all failures that nobody asked to skip, in the fixed order.
        """
        if questions:
            self._take_awaited(questions)
        if self._answers:
            self._accept()
        if self._agenda.kept:
            self._keep_last_good()
        if self._failures:
            self._deal_with_failures()
        return self.draft

    def _take_awaited(self, questions: list[Question]) -> None:
        answers = dict(self._answers)  # at these places: not asked yet
        for question in questions:
            self.draft.seconds[str(question.entry.ref)] = question.seconds
            if question.error is None:
                answers[question.place] = question.answer
            else:
                self._failures[question.entry] = question.error
        self._answers = sorted(answers.items(), key=itemgetter(0))

    def _accept(self) -> None:
        """Hold the answers to what they must be, and let the baseline learn from those of the global layer."""
        draft, agenda = self.draft, self._agenda
        noted, told, row = draft.baseline.answers, draft.told, len(agenda.entries)
        instead = dict(agenda.instead)
        news: dict[int, object] = {}
        volatile: list[int] = []
        for at, answer in self._answers:
            is_shared = at < row and at not in instead
            entry = agenda.entries[at] if is_shared else instead[at] if at < row else agenda.added[at - row]
            last = noted[at] if is_shared else VOLATILE
            if entry is None or (type(answer) is str and type(last) is str and answer == last):
                continue
            outcome: object = UNASKED
            if answer is not UNASKED:
                try:
                    outcome = draft.accept(entry, answer)
                except Exception as error:  # looking at an answer may run somebody else's code, too
                    self._failures[entry] = error
            if last is UNSEEN and outcome is not UNASKED and _can_be_noted(entry, answer):
                news[at] = answer
                continue
            if last is not VOLATILE and (outcome is not UNASKED or last is not UNSEEN):
                volatile.append(at)
            told += (at, outcome)
        if news or volatile:
            draft.baseline = draft.plan.memo.baseline = draft.baseline.learning(draft, news, volatile)

    def _asked_at(self, place: int) -> Entry:
        """Who is asked at a place of the row; somebody is."""
        agenda = self._agenda
        asked: list[Entry | None] = [*agenda.entries, *agenda.added]
        for at, entry in agenda.instead:
            asked[at] = entry
        return cast("Entry", asked[place])

    def _keep_last_good(self) -> None:
        draft = self.draft
        for _, entry in self._remaining(self._agenda.kept):
            if entry.last_good is not None:
                try:
                    entry.last_good.keep(draft.scope, draft.context, draft.answer_of(entry))
                except TypeError as error:  # a value of the caller's that cannot be hashed: as if the provider failed
                    self._failures[entry] = error

    def _ask_conditions(self) -> None:
        for _, entry in self._agenda.conditional:
            try:
                wanted = entry.when is None or _holds(entry.when(self.draft.context))
            except Exception as error:  # a condition is somebody else's code, too
                self._failures[entry] = error
            else:
                if not wanted:
                    self.draft.leave_out(entry, "when")

    def _remaining(self, places: tuple[Place, ...]) -> Sequence[Place]:
        """Those that are neither left out nor known to fail."""
        left_out, failures = self.draft.left_out, self._failures
        if not (left_out or failures):
            return places
        return [place for place in places if place[1] not in left_out and place[1] not in failures]

    def _deal_with_failures(self) -> None:
        asked = self.draft.plan.asked_in_order()
        failed = [(entry, self._told(entry)) for entry in asked if entry in self._failures]
        fatal = [(entry, error) for entry, error in failed if not self._excuse(entry, error)]
        if not fatal:
            return
        errors = [error for _, error in fatal]
        cause = errors[0] if len(errors) == 1 else ExceptionGroup("several providers of the prompt failed", errors)
        failures = [_failure(entry, error, may_skip=not self._must_not_fail(entry)) for entry, error in fatal]
        raise ProviderFailedError(failures) from cause

    def _told(self, entry: Entry) -> Exception:
        """The error of an entry as whoever assembles, and the trace, may hear it."""
        what = f"{entry.KIND} {entry.name}"
        return self.draft.registry.guarded(entry.origin.owner, what, self._failures[entry])

    def _excuse(self, entry: Entry, error: Exception) -> bool:
        """Do what the entry's ``on_error`` says; False if it says to fail."""
        if entry.on_error == "fail" or self._must_not_fail(entry):
            return False
        why = f"skipped: {words_of(error)}"
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


def _holds(answer: object) -> bool:
    """What a condition says. Its answer is somebody else's, and so is what makes that true or false."""
    if is_unawaited(answer):
        raise TypeError("its `when` gives an awaitable; make it a plain function, asked before anything async is")
    return bool(answer)


def _can_be_noted(entry: Entry, answer: object) -> bool:
    """Whether the same object, given again, is the same answer."""
    if isinstance(entry, ToolSource):
        return id(answer) in entry.memory.frozen
    return answer is None or type(answer) is str


def _failure(entry: Entry, error: Exception, *, may_skip: bool) -> ProviderFailure:
    kind = error.kind if isinstance(error, ForewordError) else "provider_failed"
    return ProviderFailure(entry.ref, kind, type(error).__name__, message_of(error), may_skip)
