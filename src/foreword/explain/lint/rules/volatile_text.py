"""FW101: text in the system prompt that is another one at the next assembly, or under another clock.

Found by making the assembly three times: twice as it is, once with the clock moved. Entries are compared, not the
rendered text, so that the one that changed is named, and not what was pushed along behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import change
from foreword.explain.lint.survey import tools_of
from foreword.prompt.origin import ASSEMBLER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from foreword.explain.lint.survey import Branch, Survey
    from foreword.prompt.assembly import AssembledSection, PromptAssembly


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)

_SECTION = 'a runtime context tells what changes outside the cached prefix: prompt.context("{name}", …)'
_VARIABLE = "tell what changes in a runtime context, and refer to it in none of the sections"
_PLACE = "let the listener that sorts them sort in one way"
_TOOL = "give the same schema each time, and hide a tool for the whole of a session or not at all"


def find(survey: Survey) -> Iterator[Finding]:
    """Compare each later assembly with the first, and tell of each entry once.

    Whatever differs without another clock also differs with it, and in each scope that has it, by other values.
    """
    told: set[tuple[str | None, ...]] = set()
    for branch in survey.branches:
        for later in branch.rounds[1:]:
            if branch.assembly is None or later.assembly is None:
                continue
            cause = "when the clock is moved" if later.clock == "moved" else "from one assembly to the next"
            for kind, finding in _Comparison(branch, branch.assembly, later.assembly, cause, survey.hide).findings():
                entry = kind, finding.name, finding.owner, finding.scope, finding.place
                if entry not in told:
                    told.add(entry)
                    yield finding


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Two assemblies of one branch."""

    branch: Branch
    first: PromptAssembly
    later: PromptAssembly
    cause: str  # why they may differ, as the end of a sentence
    hide: Callable[[str], str]

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """What differs, with the kind of each."""
        before, after = (_by_name(assembly.sections) for assembly in (self.first, self.later))
        for name in _all_of(before, after):
            for what in self._about_section(name, before.get(name), after.get(name)):
                held = before.get(name) or after[name]
                yield "section", RULE.finding(held.origin or ASSEMBLER, name, what, _SECTION.format(name=name))
        for name in sorted({name for section in before.values() for name in section.template.names}):
            for what in self._about_variable(name):
                entry = self.branch.variable(name)
                yield "variable", RULE.finding(ASSEMBLER if entry is None else entry.origin, name, what, _VARIABLE)
        origins = {tool.name: origin for side in (self.later, self.first) for tool, origin in tools_of(side)}
        for name, what in self._about_tools():
            yield "tool", RULE.finding(origins[name], name, what, _TOOL)
        for section in _moved(before, after):
            what = f'section "{section.name}" stands at another place {self.cause}'
            yield "place", RULE.finding(section.origin or ASSEMBLER, section.name, what, _PLACE)

    def _about_section(
        self, name: str, before: AssembledSection | None, after: AssembledSection | None
    ) -> Iterator[str]:
        if before is None:
            yield f'section "{name}" comes in {self.cause}'
        elif after is None:
            yield f'section "{name}" is gone {self.cause}'
        elif before.text != after.text:
            how = change(self.hide(before.text), self.hide(after.text))
            yield f'the text of section "{name}" differs {self.cause}: {how}'

    def _about_variable(self, name: str) -> Iterator[str]:
        old, new = self.first.variables.get(name), self.later.variables.get(name)
        if old != new:
            user = next(section.name for section in self.branch.sections if name in section.template.names)
            entry = self.branch.variable(name)
            is_sensitive = entry is not None and entry.sensitive
            how = "how is sensitive" if is_sensitive else change(self.hide(old or ""), self.hide(new or ""))
            yield f'variable "{name}", which section "{user}" refers to, differs {self.cause}: {how}'

    def _about_tools(self) -> Iterator[tuple[str, str]]:
        before, after = (_by_name(assembly.tools) for assembly in (self.first, self.later))
        for name in _all_of(before, after):
            if name not in after:
                yield name, f'tool "{name}" is gone {self.cause}'
            elif name not in before:
                yield name, f'tool "{name}" comes in {self.cause}'
            elif before[name] != after[name]:
                yield name, f'the schema of tool "{name}" differs {self.cause}'


def _by_name(entries: Iterable[N]) -> dict[str, N]:
    return {entry.name: entry for entry in entries}


def _all_of(before: Iterable[str], after: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*before, *after]))


def _moved(before: Mapping[str, AssembledSection], after: Mapping[str, AssembledSection]) -> list[AssembledSection]:
    """The first section that stands at another place among those that both assemblies have."""
    order = [name for name in before if name in after]
    other = [name for name in after if name in before]
    return [before[one] for one, two in zip(order, other, strict=True) if one != two][:1]


RULE = Rule(
    "FW101",
    "volatile-text",
    Severity.ERROR,
    Reads.ASSEMBLIES,
    "text or tools that differ from one assembly to the next, or when the clock moves",
    find,
)
