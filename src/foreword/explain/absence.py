"""Why something is not in a prompt: one `Missing` for every reason that there is, and a way out for each.

The trace of the assembly knows what became of each name. Here that becomes an answer: the decisive event, the reason in
one word, and, where a section went with a tool, why that tool is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from foreword.errors import did_you_mean, shown

if TYPE_CHECKING:
    from foreword.explain.subject import Subject
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.trace import Absence, Trace, TraceEvent

__all__ = ["KINDS", "EntryKind", "Missing", "Reason", "why_missing"]

Reason: TypeAlias = Literal[
    "never_registered",
    "not_recorded",
    "shadowed",
    "disabled",
    "when",
    "skipped",
    "suppressed",
    "hidden",
    "requires_tools",
    "complete",
    "removed",
    "empty",
    "no_value",
]
"""Why something is not there; stable words.

``never_registered``: nobody the prompt can see contributes it. ``not_recorded``: the log says nothing about that step's
assembly. ``shadowed``: a namesake of a nearer scope took its place, and went itself. ``disabled``: by the deployment.
``when``: its condition does not hold. ``skipped``: its provider failed, and was allowed to. ``suppressed``: runtime
contexts are switched off. ``hidden``: a mask hides the tool. ``requires_tools``: a tool that it needs is not there.
``complete``: a complete section stands alone. ``removed``: a listener took it out. ``empty``: it rendered to nothing.
``no_value``: the variable's provider gave none.
"""

EntryKind: TypeAlias = Literal["section", "context", "tool", "variable"]
KINDS: Final[tuple[EntryKind, ...]] = cast("tuple[EntryKind, ...]", get_args(EntryKind))


@dataclass(frozen=True, slots=True)
class Missing:
    """Why something is not in a prompt.

    Attributes:
        name: what was asked for.
        reason: why, in one word.
        why: the same in a sentence.
        way_out: what to do to have it there.
        kind: what it is; None for what nobody knows.
        owner: the plugin whose it is, as far as somebody's is.
        scope: the scope that it was registered in; None for the global layer.
        by: who is behind it: the shadowing entry, the override, the listener, the complete section.
        needs: of a section or context that went with a tool, why that tool is not there.
        events: all that the trace tells about that name, in order.
    """

    name: str
    reason: Reason
    why: str
    way_out: str
    kind: str | None = None
    owner: str | None = None
    scope: str | None = None
    by: str | None = None
    needs: Missing | None = None
    events: tuple[TraceEvent, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The answer as JSON."""
        return {
            "name": self.name,
            "reason": self.reason,
            "why": self.why,
            "way_out": self.way_out,
            "kind": self.kind,
            "owner": self.owner,
            "scope": self.scope,
            "by": self.by,
            "needs": None if self.needs is None else self.needs.to_json(),
            "events": [event.to_json() for event in self.events],
        }


def why_missing(subject: Subject, name: str, kind: EntryKind | None = None) -> Missing | None:
    """Why a section, context, tool or variable of that name is not in a prompt; None if it is there.

    Args:
        subject: the prompt.
        name: which.
        kind: looks only among entries of that kind, where one name stands for several.
    """
    if _is_there(subject, name, kind):
        return None
    if not subject.trace.stages:
        return _not_recorded(subject, name, kind)
    absence = subject.trace.absence(name, kind)
    if absence is None:  # a context that is not in the snapshot that the model sees, say, but in the one of its step
        return None
    events = tuple(event for event in subject.trace.about(name) if kind is None or event.kind == kind)
    if absence.event is None:
        return _never_registered(subject.trace, name, kind, events)
    return _missing(subject, absence, absence.event, events)


def _is_there(subject: Subject, name: str, kind: EntryKind | None) -> bool:
    return name in _names_in(subject, kind)


def _names_in(subject: Subject, kind: EntryKind | None) -> set[str]:
    names: dict[EntryKind, set[str]] = {
        "section": {part.name for part in subject.sections},
        "context": {part.name for part in subject.contexts},
        "tool": {tool.name for tool in subject.tools},
        "variable": {variable.name for variable in subject.variables},
    }
    return {name for each in (KINDS if kind is None else (kind,)) for name in names[each]}


def _not_recorded(subject: Subject, name: str, kind: EntryKind | None) -> Missing:
    if subject.is_recorded:
        sent, what = _names_in(subject, kind), "names" if kind is None else f"{kind}s"
        why = f"{subject.title} is the work of a recorder, which sees what is sent, and not what was left out, or why"
        return Missing(name, "not_recorded", why, f"look among what was sent: {did_you_mean(name, sent, what)}", kind)
    why = f"{subject.title} was logged without what explains it, so nobody can say"
    way_out = "log steps with step_trace(rendering), as the agent's loop does"
    return Missing(name, "not_recorded", why, way_out, kind)


def _never_registered(trace: Trace, name: str, kind: EntryKind | None, events: tuple[TraceEvent, ...]) -> Missing:
    known = _known_names(trace, kind)
    what = kind or "section, context, tool or variable"
    why = f"no {what} of that name is registered where this prompt looks: globally, or in a scope of its own"
    return Missing(name, "never_registered", why, did_you_mean(name, known), kind, events=events)


def _known_names(trace: Trace, kind: EntryKind | None) -> set[str]:
    kinds = KINDS if kind is None else (kind,)
    listed = {name for stage in trace.stages for each in kinds for name in stage.entered.get(f"{each}s", ())}
    return listed | {event.name for event in trace.events if event.kind in kinds}


def _missing(subject: Subject, absence: Absence, event: TraceEvent, events: tuple[TraceEvent, ...]) -> Missing:
    reason, detail = _reason(event)
    whose = f'{event.kind} "{shown(absence.name)}"{"" if event.owner is None else f" of {shown(event.owner)}"}'
    why, way_out = _SENTENCES[reason]
    by = event.by if reason != "hidden" else _mask_behind(event) or event.by
    facts: dict[str, Any] = {"whose": whose, "by": by or "somebody", "detail": detail, "kind": event.kind}
    needs = None if reason != "requires_tools" else why_missing(subject, detail, "tool")
    told = events or (event,)
    return Missing(
        absence.name, reason, why.format(**facts), way_out.format(**facts),
        event.kind, event.owner, event.scope, by, needs, told,
    )  # fmt: skip


def _reason(event: TraceEvent) -> tuple[Reason, str]:
    """The reason in one word, and what more there is to say: an error, a tool."""
    told = event.reason or event.action
    word, colon, detail = told.partition(":")
    if _mask_behind(event) is not None:
        return "hidden", ""
    if event.action in ("removed", "empty", "shadowed") and not event.reason:
        return cast("Reason", event.action), ""
    if told == "no value":
        return "no_value", ""
    if word in _SENTENCES:
        return cast("Reason", word), detail.strip() if colon else ""
    return "skipped", told


def _mask_behind(event: TraceEvent) -> str | None:
    """The mask of a deployment that took a tool out, which is a listener where the tool is no registry's; else None."""
    match = None if event.kind != "tool" or event.by is None else _MASK.fullmatch(event.by)
    return None if match is None or event.action != "removed" else f"mask {match['mask']}"


_MASK: Final = re.compile(r'listener (?P<mask>"agents\..+\.tools" of deployment\b.*)')
"""How traces call what `foreword.compose.masks` makes of an agent's ``tools: {allow, deny}``."""

_SENTENCES: Final[dict[str, tuple[str, str]]] = {
    "shadowed": (
        "{whose} is shadowed by {by}",
        "rename one of the two, or close the shadowing one",
    ),
    "disabled": (
        "{whose} is disabled: {by}",
        "remove that line, or ask whoever wrote it",
    ),
    "when": (
        "the condition (when=…) of {whose} does not hold for this prompt",
        "look at what its condition asks of the context: model, scope, values",
    ),
    "skipped": (
        "the provider of {whose} failed and was skipped: {detail}",
        "mend the provider, or register it with on_error=\"fail\" to be told at once",
    ),
    "suppressed": (
        "runtime contexts are suppressed by {by}, {whose} among them",
        "take the suppression away, or say it in a section",
    ),
    "hidden": (
        "{whose} is hidden by {by}",
        "change the allow or deny list that hides it",
    ),
    "requires_tools": (
        "{whose} goes with the tool \"{detail}\", which is not there",
        "bring the tool back, or drop it from requires_tools",
    ),
    "complete": (
        "{whose} gave way to {by}, which is complete and stands alone",
        "make that one not complete, or say the same in it",
    ),
    "removed": (
        "{whose} was removed by {by}",
        "mend that listener, or protect it: protect(sections=[…]) or protect(tools=[…])",
    ),
    "empty": (
        "{whose} rendered to nothing",
        "give it a text; what is empty is left out, with its blank line",
    ),
    "no_value": (
        "{whose} has no value for this prompt: its provider gave None",
        "give it a value; a text that refers to it cannot be rendered",
    ),
}  # fmt: skip
