"""Masking: how a prompt reads to whoever is not to see what is sensitive in it.

Questions are asked of the prompt as it is, or sizes and differences would be wrong; what is told of it is read from
its masked twin. Where two prompts are held against each other, a value that changed says so, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from foreword.explain.subject import Part, RequestMessage, Sensitive
from foreword.prompt.origin import ASSEMBLER
from foreword.prompt.sensitive import SENSITIVE
from foreword.prompt.spans import Span, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from foreword.explain.subject import Subject

__all__ = ["CHANGED", "Masker", "masked", "masked_pair", "sensitive_in"]

CHANGED: Final = "[sensitive, changed]"
"""What stands in the place of something sensitive that was otherwise in the prompt before."""


def masked(subject: Subject) -> Subject:
    """A prompt as it may be shown; the same object if nothing in it is sensitive."""
    return Masker()(subject)


def masked_pair(old: Subject, new: Subject) -> tuple[Subject, Subject]:
    """Two prompts as they may be shown side by side: what is sensitive in one is so in both."""
    hidden = old.sensitive.united(new.sensitive)
    return (
        _shown(old, *_texts(old, hidden)),
        _shown(new, *_texts(new, hidden, _values(old))),
    )


class Masker:
    """Masks the prompts of a session one after the other; texts that stay the same are masked once."""

    def __init__(self) -> None:
        self._last: tuple[Subject, tuple[Spans, Spans]] | None = None

    def __call__(self, subject: Subject) -> Subject:
        """A prompt as it may be shown; the same object if nothing in it is sensitive."""
        if not subject.is_sensitive:
            return subject
        last = self._last
        if last is None or not _has_texts_of(last[0], subject):
            last = self._last = subject, _texts(subject, subject.sensitive)
        return _shown(subject, *last[1])


def sensitive_in(
    parts: Sequence[Part], masks: Mapping[int, str], snapshot: RequestMessage | None, text: str
) -> Sensitive:
    """What is sensitive in a logged prompt, of which the log keeps how its sections read masked.

    Args:
        parts: its sections.
        masks: how those of them read that hold something sensitive, by position.
        snapshot: the message that tells its runtime contexts.
        text: the system text.
    """
    variables: set[str] = set()
    sections: set[str] = set()
    for at, told in masks.items():
        part = parts[at] if at < len(parts) else None
        if part is None or part.text == told:
            continue  # a placeholder stands there already
        names = _variables_behind(part, text, told)
        if names is None:
            sections.add(part.name)
        else:
            variables |= names
    source = None if snapshot is None else snapshot.source
    contexts = () if source is None else (part.name for part in source.parts if part.sensitive)
    return Sensitive(frozenset(variables), frozenset(sections), frozenset(contexts))


def _variables_behind(part: Part, text: str, told: str) -> set[str] | None:
    """The variables whose values were masked; None if it cannot be told from the spans."""
    names: set[str] = set()
    at = 0
    for span in part.spans:
        value = text[span.start : span.end]
        if span.variable is not None and told.startswith(SENSITIVE, at):
            names.add(span.variable)
            at += len(SENSITIVE)
        elif told.startswith(value, at):
            at += len(value)
        else:
            return None
    return names if at == len(told) else None


# -- one prompt --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Values:
    """What stood in the prompt before, by name."""

    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    sections: Mapping[str, str] = field(default_factory=dict[str, str])
    contexts: Mapping[str, str] = field(default_factory=dict[str, str])


def _values(subject: Subject) -> _Values:
    return _Values(
        {each.name: each.value for each in subject.variables},
        {part.name: part.text for part in subject.sections},
        {part.name: part.text for part in subject.contexts},
    )


def _has_texts_of(one: Subject, other: Subject) -> bool:
    same_texts = one.spans is other.spans and one.snapshot_spans is other.snapshot_spans
    return same_texts and one.sensitive == other.sensitive and one.held_snapshot is other.held_snapshot


def _shown(subject: Subject, spans: Spans, snapshot_spans: Spans) -> Subject:
    messages = subject.messages
    if any(each.shown is not None for each in messages):
        messages = tuple(each.shown or each for each in messages)
    if spans is subject.spans and snapshot_spans is subject.snapshot_spans and messages is subject.messages:
        return subject
    return replace(subject, spans=spans, snapshot_spans=snapshot_spans, messages=messages, sensitive=Sensitive())


def _texts(subject: Subject, hidden: Sensitive, before: _Values | None = None) -> tuple[Spans, Spans]:
    """The system text and the snapshot, masked."""
    known = before or _Values()
    spans = _masked(subject.spans, subject.sections, hidden.variables, hidden.sections, known.variables, known.sections)
    held = subject.held_snapshot
    told = None if held is None or held.shown is None else held.shown.message.text
    plain = _masked(subject.snapshot_spans, subject.contexts, hidden.variables, hidden.contexts, {}, {})
    if told is not None and plain.text != told:  # it was reworded, so nobody can say where what is sensitive stands
        return spans, Spans([Span(0, len(told), "separator", ASSEMBLER)], told)
    if before is None:
        return spans, plain
    shown = _masked(
        subject.snapshot_spans, subject.contexts, hidden.variables, hidden.contexts, known.variables, known.contexts
    )
    return spans, shown


def _masked(
    spans: Spans,
    parts: Iterable[Part],
    variables: AbstractSet[str],
    names: AbstractSet[str],
    values_before: Mapping[str, str],
    parts_before: Mapping[str, str],
) -> Spans:
    """A text in which variables and whole parts are masked; the same object if it holds none of them."""
    if not any(span.variable in variables or span.section in names for span in spans):
        return spans
    whole = {part.start: part for part in parts if part.name in names}
    told: list[Span] = []
    texts: list[str] = []
    at = passed = 0
    for span in spans:
        if span.start < passed:  # of a part that is masked as a whole
            continue
        text = spans.text[span.start : span.end]
        part = whole.get(span.start) if span.kind != "separator" else None
        if part is not None:
            passed = part.end
            text, span = _stand_in(part.name, part.text, parts_before), replace(span, kind="literal", variable=None)
        elif span.variable is not None and span.variable in variables:
            text = _stand_in(span.variable, text, values_before)
        told.append(replace(span, start=at, end=at + len(text)))
        texts.append(text)
        at += len(text)
    return Spans(told, "".join(texts))


def _stand_in(name: str, value: str, before: Mapping[str, str]) -> str:
    return SENSITIVE if before.get(name, value) == value else CHANGED
