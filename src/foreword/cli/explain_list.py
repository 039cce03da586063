"""Who wrote something, and why something is missing: as rows for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from foreword.cli.heading import count, heading
from foreword.cli.table import Cell, Column, table
from foreword.cli.terminal import Piece
from foreword.cli.times import moment
from foreword.cli.wrapping import wrapped
from foreword.explain.telling import about

if TYPE_CHECKING:
    from foreword.cli.explain_subject import Looked
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.absence import Missing
    from foreword.explain.finding import FirstSeen
    from foreword.explain.provenance import Occurrence, Stretch
    from foreword.explain.subject import Subject
    from foreword.prompt.origin import Origin

__all__ = ["missing_document", "missing_rows", "origin_document", "origin_rows", "there_rows"]

_COLUMNS: Final = (
    Column("text", least=16),
    Column("plugin", least=12),
    Column("what it is", least=16),
    Column("written in", least=12),
    Column("also", least=12),
)
_LONGEST: Final = 200  # characters of a stretch
_LABEL: Final = 12  # cells


# -- who wrote it ------------------------------------------------------------------------------------------------------


def origin_document(subject: Subject, found: Sequence[Occurrence], first: FirstSeen | None) -> dict[str, Any]:
    """The places of a text as JSON."""
    return {
        "prompt": subject.title,
        "occurrences": [each.to_json() for each in found],
        "first_seen": None if first is None else first.to_json(),
    }


def origin_rows(
    subject: Subject, found: Sequence[Occurrence], first: FirstSeen | None, screen: Screen
) -> Iterator[Row]:
    """The rows that tell who wrote a text, place by place."""
    for at, occurrence in enumerate(found):
        if at:
            yield ()
        yield from heading(_place(occurrence), f"in {subject.title}" if at == 0 else "", screen)
        yield ()
        yield from table(_COLUMNS, [_record(stretch, screen) for stretch in occurrence.stretches], screen)
    if first is not None:
        yield ()
        version = "" if first.distribution is None else f", then of {first.distribution}"
        where = "" if _is_same_place(first.occurrence, found[0]) else f", there in {_in_words(first.occurrence)}"
        yield from _labelled("first seen", f"in {first.location}, {moment(first.time)}{version}{where}", screen)
        if first.unread:
            told = f"{', '.join(first.unread)}: damaged, or of a newer version, so not looked through"
            yield from _labelled("", told, screen)


def _place(occurrence: Occurrence) -> str:
    at = f"line {occurrence.line}, column {occurrence.column}"
    message = "" if occurrence.message is None else f"message {occurrence.message + 1}"
    match occurrence.place:
        case "system":
            return f"System text, {at}"
        case "contexts":
            return f"Runtime contexts, {at}{f', {message}' if message else ''}"
        case "tool":
            return f"Tool {occurrence.name}"
        case "message":
            return f"History, {message}, by {occurrence.name}, {at}"


def _is_same_place(one: Occurrence, other: Occurrence) -> bool:
    return _in_words(one) == _in_words(other)


def _in_words(occurrence: Occurrence) -> str:
    """Where it stands, without what moves from one request to the next."""
    section = occurrence.stretches[0].section
    if section is not None:
        return section
    match occurrence.place:
        case "tool":
            return f"the tool {occurrence.name}"
        case "message":
            return f"the history, by {occurrence.name}"
        case "system":
            return "the system text"
        case "contexts":
            return "the runtime contexts"


def _record(stretch: Stretch, screen: Screen) -> tuple[Cell, ...]:
    text = stretch.text if len(stretch.text) <= _LONGEST else f"{stretch.text[:_LONGEST]}…"
    return (
        (Piece(screen.shown(text.replace("\n", "↵" if screen.can_show("↵") else "\\n").replace("\t", " ")), "bold"),),
        (Piece(screen.name(stretch.owner)),),
        tuple(Piece(screen.name(line)) for line in _what(stretch)),
        () if stretch.source is None else (Piece(screen.name(stretch.source)),),
        tuple(Piece(screen.name(line), "dim") for line in about(stretch.origin)),
    )


def _what(stretch: Stretch) -> tuple[str, ...]:
    if stretch.kind == "separator":
        return ("blank line of the assembler",) if not stretch.text.strip() else ("frame of the assembler",)
    if stretch.variable is None:
        return () if stretch.section is None else (stretch.section,)
    whose = stretch.section_origin
    owner = "" if whose is None or whose.owner == stretch.owner else f" of {whose.owner}"
    return f"{{{{{stretch.variable}}}}}", f"in {stretch.section}{owner}"


# -- why it is missing -------------------------------------------------------------------------------------------------


def missing_document(subject: Subject, name: str, missing: Missing | None) -> dict[str, Any]:
    """The answer as JSON; ``missing`` is null for what is there."""
    return {"prompt": subject.title, "name": name, "missing": None if missing is None else missing.to_json()}


def missing_rows(looked: Looked, missing: Missing, screen: Screen) -> Iterator[Row]:
    """The rows that tell why something is missing."""
    yield from heading(f'"{missing.name}" is missing', f"from {looked.subject.title}", screen)
    yield ()
    yield from _missing_facts(looked, missing, screen)
    needs = missing.needs
    if needs is not None:
        yield ()
        yield from heading(f'tool "{needs.name}"', "which it needs", screen)
        yield ()
        yield from _missing_facts(looked, needs, screen)


def _missing_facts(looked: Looked, missing: Missing, screen: Screen) -> Iterator[Row]:
    yield from _labelled("why", looked.hide(missing.why), screen)
    yield from _labelled("way out", missing.way_out, screen)
    for at, event in enumerate(missing.events if len(missing.events) > 1 else ()):  # one alone says what `why` does
        yield from _labelled("" if at else "story", looked.hide(str(event)), screen, "dim")


def there_rows(subject: Subject, name: str, screen: Screen) -> Iterator[Row]:
    """The rows that tell that something is not missing at all, and whose it is."""
    parts = [*subject.sections, *subject.contexts]
    whose: list[tuple[str, Origin]] = [(part.kind, part.origin) for part in parts if part.name == name]
    whose += [("tool", tool.origin) for tool in subject.tools if tool.name == name]
    whose += [("variable", variable.origin) for variable in subject.variables if variable.name == name]
    where = count(len(whose), "time") if whose else _why_unseen(subject, name)
    yield from heading(f'"{name}" is there', f"in {subject.title}, {where}", screen)
    events = subject.trace.about(name)
    if whose or events:
        yield ()
    for kind, origin in whose:
        yield from _labelled(kind, "; ".join((str(origin), *about(origin))), screen)
    for at, event in enumerate(events):  # what it shadows, say, or who changed it
        yield from _labelled("" if at else "story", str(event), screen, "dim")


def _why_unseen(subject: Subject, name: str) -> str:
    """Why nothing is to be seen of what is there all the same."""
    left = [stage.left for stage in subject.trace.stages[-1:]]
    said = [kind for kind in ("section", "context", "tool") if any(name in each[f"{kind}s"] for each in left)]
    if not said:
        return "though no text of it refers to it"
    lost = ", and what it says is not in the log" if subject.unstored else ""
    return f"as a {said[0]}, by the trace of its step{lost}"


def _labelled(label: str, text: str, screen: Screen, style: str = "") -> Iterator[Row]:
    first = label.ljust(_LABEL)
    for line in screen.told(text).replace("\t", " ").split("\n"):
        for row in wrapped(line, max(screen.width - _LABEL, 8)):
            yield (Piece(first, "bold"), Piece(row, style))
            first = " " * _LABEL
