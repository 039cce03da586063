"""The engine: look at a prompt once, let each rule look at what was seen, and sort what they found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from foreword.explain.lint.clock import CLOCK_PACKAGE
from foreword.explain.lint.config import LintConfig
from foreword.explain.lint.gathering import Wanted, agather, gather, survey_of
from foreword.explain.lint.rule import Reads
from foreword.explain.lint.rules import RULES
from foreword.prompt.context import AssembleContext
from foreword.prompt.system_prompt import SystemPrompt

if TYPE_CHECKING:
    from foreword.explain.lint.finding import Finding
    from foreword.explain.lint.processes import Run
    from foreword.explain.lint.rule import Rule
    from foreword.explain.lint.survey import Survey
    from foreword.explain.subject import Subject
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.rendering import Rendering

__all__ = ["NO_PROCESSES", "Ignored", "LeftOut", "Report", "aexamine", "alint", "examine", "lint"]

_NO_CLOCK: Final = f'looked without moving the clock, which needs {CLOCK_PACKAGE}: pip install "foreword[lint]"'
_NO_PROMPT: Final = "not run: only the rules that read texts are, on what was rendered or sent"
NO_PROCESSES: Final = "not run: only foreword lint --deep starts processes to compare"


@dataclass(frozen=True, slots=True)
class Ignored:
    """A finding that the configuration covers."""

    finding: Finding
    key: str  # of `LintConfig.ignore`
    why: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A rule that did not run, or not in full."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that there is to say.

    Attributes:
        findings: what is to be told, the worst first.
        ignored: what the configuration covers.
        idle: keys of the configuration's ``ignore`` that cover nothing.
        left_out: rules that did not run, or not in full, and why.
    """

    findings: tuple[Finding, ...]
    ignored: tuple[Ignored, ...] = ()
    idle: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def lint(
    target: SystemPrompt | Rendering | Subject,
    config: LintConfig | None = None,
    *,
    context: AssembleContext | None = None,
    rules: Iterable[Rule] | None = None,
) -> list[Finding]:
    """Say what is wrong with a prompt, or will be.

    Its providers, conditions and listeners are asked as in a step: three times for each scope, the last time under
    another clock, unless the rules that need that are not selected. Nothing of the prompt is changed.

    Args:
        target: a prompt (of a scoped view, that scope and those below it); or what was rendered or sent, a rendering
            or a subject out of a log, for which only the rules run that read texts.
        config: which rules run, and what is ignored; None for all rules, and nothing.
        context: what assemblies are made for: values that providers need, a model. Its scope is set for each.
        rules: the rules; None for those that ship.

    Returns:
        The findings, the worst first, then by code, owner and place.

    Raises:
        InvalidConfigError: the configuration names rules that there are not.
        RunningLoopError: an async provider or a listener is in force, and a loop is running here; use `alint`.
        InactiveContextError: the view is closed.
    """
    return list(examine(target, config, context=context, rules=rules).findings)


async def alint(
    target: SystemPrompt | Rendering | Subject,
    config: LintConfig | None = None,
    *,
    context: AssembleContext | None = None,
    rules: Iterable[Rule] | None = None,
) -> list[Finding]:
    """The same from a coroutine."""
    return list((await aexamine(target, config, context=context, rules=rules)).findings)


def examine(
    target: SystemPrompt | Rendering | Subject,
    config: LintConfig | None = None,
    *,
    context: AssembleContext | None = None,
    rules: Iterable[Rule] | None = None,
) -> Report:
    """Like `lint`, with what was ignored and what could not be looked at."""
    examination = _Examination.of(config, rules)
    if not isinstance(target, SystemPrompt):
        return examination.report(survey_of(target, examination.config.section_tokens))
    return examination.report(gather(examination.wanted(target, context, ())))


async def aexamine(
    target: SystemPrompt | Rendering | Subject,
    config: LintConfig | None = None,
    *,
    context: AssembleContext | None = None,
    rules: Iterable[Rule] | None = None,
    agents: Collection[ScopeKey] = (),
    runs: tuple[Run, ...] = (),
    hide: Callable[[str], str] = str,
) -> Report:
    """Like `alint`, with what was ignored and what could not be looked at.

    Args:
        target: as for `lint`.
        config: as for `lint`.
        context: as for `lint`.
        rules: as for `lint`.
        agents: scopes that are agents'; their assemblies are told so.
        runs: what other processes made of the same prompt.
        hide: takes out of texts that findings quote what nobody is to see.
    """
    examination = _Examination.of(config, rules)
    if not isinstance(target, SystemPrompt):
        return examination.report(survey_of(target, examination.config.section_tokens))
    survey = await agather(examination.wanted(target, context, agents))
    return examination.report(replace(survey, runs=runs, hide=hide))


@dataclass(frozen=True, slots=True)
class _Examination:
    """One run of some rules."""

    config: LintConfig
    rules: tuple[Rule, ...]  # those that are selected

    @classmethod
    def of(cls, config: LintConfig | None, rules: Iterable[Rule] | None) -> _Examination:
        config = LintConfig() if config is None else config
        every = RULES if rules is None else tuple(rules)
        config.check(every)
        return cls(config, tuple(rule for rule in every if config.selects(rule.code)))

    def wanted(self, prompt: SystemPrompt, context: AssembleContext | None, agents: Collection[ScopeKey]) -> Wanted:
        again = any(rule.reads is Reads.ASSEMBLIES for rule in self.rules)
        return Wanted(prompt, context or AssembleContext(), agents, again, self.config.section_tokens)

    def report(self, survey: Survey) -> Report:
        """Let each rule look, as far as there is something for it to look at."""
        found: list[Finding] = []
        left_out: list[LeftOut] = []
        for rule in self.rules:
            why = _why_not(rule, survey)
            if why is None:
                found += rule.find(survey)
            else:
                left_out.append(LeftOut(rule.code, why))
            if rule.reads is Reads.ASSEMBLIES and why is None and not survey.has_moved_clock:
                left_out.append(LeftOut(rule.code, _NO_CLOCK))
        return self._sorted_out(found, left_out)

    def _sorted_out(self, found: Iterable[Finding], left_out: list[LeftOut]) -> Report:
        ignore = self.config.ignore
        told: list[Finding] = []
        ignored: list[Ignored] = []
        for finding in sorted(dict.fromkeys(found), key=_place_in_report):
            key = self.config.ignored_by(finding)
            if key is None:
                told.append(finding)
            else:
                ignored.append(Ignored(finding, key, ignore[key]))
        idle = [key for key in ignore if key not in {each.key for each in ignored} and self._ran(key, left_out)]
        return Report(tuple(told), tuple(ignored), tuple(idle), tuple(left_out))

    def _ran(self, key: str, left_out: Iterable[LeftOut]) -> bool:
        """Whether every rule that a key of ``ignore`` is about has run: else it may be needed all the same."""
        code = key.partition(":")[0]
        missing = {each.code for each in left_out}
        about = [rule.code for rule in self.rules if rule.code.startswith(code)]
        return bool(about) and missing.isdisjoint(about)


def _why_not(rule: Rule, survey: Survey) -> str | None:
    """Why a rule has nothing to look at; None if it has."""
    if rule.reads is not Reads.TEXTS and survey.config is None:
        return _NO_PROMPT
    if rule.reads is Reads.PROCESSES and not survey.runs:
        return NO_PROCESSES
    return None


def _place_in_report(finding: Finding) -> tuple[int, str, str, str, str, str]:
    return (
        finding.severity.rank,
        finding.code,
        finding.owner,
        finding.place or "",
        finding.scope or "",
        finding.message,
    )
