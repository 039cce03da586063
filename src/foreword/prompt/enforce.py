"""Stage 5, enforce: what no listener can undo.

In this order: protected entries come back from the canonical assembly; a complete section becomes the only one;
contexts go while they are suppressed; an entry whose required tool is not there goes, whoever put it under that name.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.draft import Draft

__all__ = ["enforce", "restore"]


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def enforce(draft: Draft, assembly: PromptAssembly) -> None:
    """Bring an assembly in order after the waterfall. A list that nobody touched is left to the draft."""
    plan = draft.plan
    sections, contexts, tools = assembly.listed()
    if sections is not None and plan.protected_sections:
        assembly.sections = restore(draft.canonical_sections(), sections, plan.protected_sections)
    if tools is not None and plan.protected_tools:
        assembly.tools = restore(draft.tools(), tools, plan.protected_tools)
    complete = draft.complete() if plan.complete else None
    if complete is not None:
        assembly.sections = [draft.assembled(complete)]
    if contexts is not None and draft.suppressed:
        assembly.contexts = []
    _drop_unsupported(draft, assembly)


def enforce_untouched(draft: Draft) -> None:
    """The same for a draft that nobody has touched, without a complete section: only needed tools are to be seen to."""
    if draft.plan.demanding:
        draft.note_unsupported(draft.tool_names())


def restore(canonical: Sequence[N], result: Sequence[N], protected: Set[str]) -> list[N]:
    """A result with its protected entries as they were canonically.

    Everything that bears a protected name is removed; then each protected original, in canonical order, is put before
    the first entry of the result that is unprotected and comes later than it canonically, or at the end. The order
    that listeners gave to unprotected entries stays.

    Args:
        canonical: the entries before the waterfall.
        result: the entries after it.
        protected: the protected names.
    """
    place = {entry.name: at for at, entry in reversed(list(enumerate(canonical)))}  # of several, the first
    kept = [entry for entry in result if entry.name not in protected]
    # farthest[i]: the latest canonical place among the first i + 1 kept entries; it grows, so it can be bisected for
    # the first kept entry that comes later than a given one
    farthest = list(accumulate((place.get(entry.name, -1) for entry in kept), max))
    before: dict[int, list[N]] = {}
    for at, entry in enumerate(canonical):
        if entry.name in protected:
            before.setdefault(bisect_right(farthest, at), []).append(entry)
    restored: list[N] = []
    for at, entry in enumerate(kept):
        restored += (*before.get(at, ()), entry)
    return restored + before.get(len(kept), [])


def _drop_unsupported(draft: Draft, assembly: PromptAssembly) -> None:
    """Take out entries whose required tool is not there. What a listener put under such a name goes, too."""
    if not draft.plan.demanding:
        return
    listed = assembly.listed()[2]
    draft.note_unsupported(draft.tool_names() if listed is None else {tool.name for tool in listed})
    gone = {(entry.KIND, entry.name) for entry in draft.unsupported}
    sections, contexts, _ = assembly.listed()
    if gone and sections is not None:
        assembly.sections = _without(sections, {name for kind, name in gone if kind == "section"})
    if gone and contexts is not None:
        assembly.contexts = _without(contexts, {name for kind, name in gone if kind == "context"})


def _without(entries: Iterable[N], names: Set[str]) -> list[N]:
    return [entry for entry in entries if entry.name not in names]
