"""The stable head of a system text: its beginning that is the same in every step, for all who share its contributions.

Providers keep the beginning of a request. Where this one ends is the place up to which it is worth keeping for other
sessions, too; behind it stands the first section that depends on the step, or on whom it is for.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, cast

from foreword.errors import RenderError
from foreword.prompt.spans import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from foreword.prompt.assembly import AssembledSection
    from foreword.prompt.contributions import Section, Variable
    from foreword.prompt.draft import Draft
    from foreword.prompt.plan import Plan
    from foreword.prompt.render import Body

__all__ = ["stable_head"]


def stable_head(draft: Draft, body: Body) -> int:
    """How many characters of the system text, from its start, do not depend on the step.

    A section counts if it was registered as a text, without a condition, and all variables in it as values; and if no
    listener has put another section, or another value, in its place. Unless a listener did, the plan knows the answer.
    """
    plan = draft.plan
    if body.has_own_sections:
        entries = {entry.name: entry for entry in plan.sections}
        kept = (_untouched(section, entries.get(section.name)) for section in body.sections())
        return _length(plan, kept, body.setters)
    if body.setters:
        return _length(plan, plan.sections, body.setters)
    if plan.stable_head is None:
        plan.stable_head = _length(plan, plan.sections, ())
    return plan.stable_head


def _untouched(section: AssembledSection, entry: Section | None) -> Section | None:
    """The entry behind a section, unless a listener has put it there."""
    return entry if entry is not None and entry.is_settled() and section is entry.assembled_static() else None


def _length(plan: Plan, entries: Iterable[Section | None], overwritten: Collection[str]) -> int:
    """The length of the head of a text of some entries, some of whose variables were set by listeners."""
    texts: list[str] = []
    values = plan.variables.static_values()
    for entry in takewhile(lambda entry: entry is not None and entry.is_settled(), entries):
        section: AssembledSection = cast("Section", entry).assembled_static()
        names = section.template.names
        if not all(name not in overwritten and _is_value(plan.variables.entry(name)) for name in names):
            break
        try:
            texts.append(section.render(values))
        except RenderError:  # there is no rendering with that section, so it is no part of this one
            break
    return len(SEPARATOR.join(filter(None, texts)))


def _is_value(variable: Variable | None) -> bool:
    return variable is not None and variable.provider.call is None and variable.when is None
