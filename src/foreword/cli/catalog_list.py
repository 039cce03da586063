"""The catalog as a list for people, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from foreword.cli.heading import count, heading
from foreword.cli.terminal import UNBOUNDED, Piece
from foreword.cli.wrapping import cell_len, padded, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.terminal import Row, Screen
    from foreword.kernel.catalog import Catalog, EventEntry, ServiceEntry

__all__ = ["catalog_document", "catalog_rows", "import_line", "listener_lines"]

_WIDEST: Final = 100  # cells; longer lines are hard to read, however wide the terminal
_INDENT: Final = "  "
_DEEPER: Final = "    "
_GAP: Final = "  "
_NARROW: Final = 60  # cells; below that titles and texts do not go side by side


# -- what a page shows as well -----------------------------------------------------------------------------------------


def import_line(home: str) -> str:
    """The line that imports something from its home, ``module:NAME``."""
    module, _, name = home.partition(":")
    return f"from {module} import {name}"


def listener_lines(event: EventEntry, width: int) -> list[str]:
    """How a listener of an event is declared: in one line if it fits, else with a line for each parameter."""
    head = f"{'async ' if event.is_async else ''}def listener"
    whole = f"{head}{event.signature}"
    if cell_len(whole) <= width or not event.parameters:
        return [whole]
    tail = f") -> {event.returns}" if event.returns else ")"
    return [f"{head}(", *(f"    {each}," for each in event.parameters), tail]


# -- for people --------------------------------------------------------------------------------------------------------


def catalog_rows(names: Sequence[str], catalog: Catalog, screen: Screen) -> Iterator[Row]:
    """The rows of a list: events, then services, each with what it is and from where it comes."""
    facts = f"{count(len(catalog.events), 'event')}, {count(len(catalog.services), 'service')}"
    yield from heading(f"Catalog of {', '.join(names)}", facts, screen)
    width = screen.width if screen.width == UNBOUNDED else min(screen.width, _WIDEST)
    for event in catalog.events:
        yield from _event(event, screen, width)
    for service in catalog.services:
        yield from _service(service, screen, width)


def _event(event: EventEntry, screen: Screen, width: int) -> Iterator[Row]:
    yield from _title(event.name, f"{event.mode.value} event", screen, width)
    for line in listener_lines(event, width - len(_INDENT)):
        yield from ((Piece(row, "cyan"),) for row in _hanging(_INDENT + line, screen, width))
    yield ()
    yield from _doc(event.doc, screen, width)
    yield from _facts(
        {
            "listeners": event.how,
            "subject": event.subject or "none: all listeners hear it",
            "errors": event.errors,
            "import": import_line(event.home),
            "declared": "" if event.source is None else str(event.source),
        },
        screen,
        width,
    )


def _service(service: ServiceEntry, screen: Screen, width: int) -> Iterator[Row]:
    yield from _title(service.name, "service", screen, width)
    yield from _doc(service.doc, screen, width)
    yield from _facts(
        {
            "plugin": service.plugin or "",
            "config": service.config or "",
            "import": import_line(service.home),
            "declared": "" if service.source is None else str(service.source),
        },
        screen,
        width,
    )


def _title(name: str, kind: str, screen: Screen, width: int) -> Iterator[Row]:
    """A blank row, the name and what it is: in one row if that fits."""
    yield ()
    name, kind = screen.name(name), screen.name(kind)
    if cell_len(name) + len(_GAP) + cell_len(kind) <= width:
        yield Piece(name, "bold"), Piece(f"{_GAP}{kind}", "dim")
    else:
        yield from ((Piece(row, "bold"),) for row in _wrapped(name, screen, width))
        yield (Piece(f"{_INDENT}{kind}", "dim"),)


def _doc(doc: str, screen: Screen, width: int) -> Iterator[Row]:
    """The paragraphs of a docstring, in rows of our width, and a blank row; those that are set by hand stay so."""
    for paragraph in doc.split("\n\n") if doc else ():
        lines = paragraph.split("\n")
        is_set = any(line[:1] in (" ", "*", "-", "|") for line in lines)
        for line in lines if is_set else [" ".join(lines)]:
            yield from ((Piece(_INDENT + row),) for row in _wrapped(line, screen, width - len(_INDENT)))
        yield ()


def _facts(facts: dict[str, str], screen: Screen, width: int) -> Iterator[Row]:
    """A row for each fact, beside its title; on a narrow screen below it."""
    is_narrow = width < _NARROW
    margin = len(_INDENT) + (len(_INDENT) if is_narrow else max(map(len, facts)) + len(_GAP))
    for title, text in facts.items():
        beside = "" if is_narrow else title
        if is_narrow and text:
            yield (Piece(_INDENT + title, "dim"),)
        for row in _wrapped(text, screen, width - margin) if text else ():
            yield Piece(padded(_INDENT + beside, margin), "dim"), Piece(row)
            beside = ""


def _hanging(line: str, screen: Screen, width: int) -> Iterator[str]:
    """A line of code in rows: in one if it fits; else those behind the first are set in more deeply than it."""
    code = line.lstrip(" ")
    indent = line[: len(line) - len(code)]
    deeper = "" if cell_len(screen.name(line)) <= width else _DEEPER
    for at, row in enumerate(_wrapped(code, screen, width - len(indent) - len(deeper))):
        yield indent + (deeper if at else "") + row


def _wrapped(line: str, screen: Screen, width: int) -> list[str]:
    return [row.rstrip() for row in wrapped(screen.name(line), max(width, 2))]


# -- for programs ------------------------------------------------------------------------------------------------------


def catalog_document(names: Sequence[str], catalog: Catalog) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "packages": list(names),
        "events": [_event_document(event) for event in catalog.events],
        "services": [_service_document(service) for service in catalog.services],
        "unread": [{"module": each.module, "why": each.why} for each in catalog.unread],
    }


def _event_document(event: EventEntry) -> dict[str, Any]:
    return {
        "name": event.name,
        "mode": event.mode.value,
        "subject": event.subject,
        "on_error": event.on_error,
        "signature": event.signature,
        "doc": event.doc,
        "import": event.home,
        "module": event.module,
        "source": None if event.source is None else str(event.source),
    }


def _service_document(service: ServiceEntry) -> dict[str, Any]:
    return {
        "name": service.name,
        "plugin": service.plugin,
        "config": service.config,
        "doc": service.doc,
        "import": service.home,
        "module": service.module,
        "source": None if service.source is None else str(service.source),
    }
