"""The catalog as a page in Markdown: ``docs/reference/events.md`` is one, and packages can make their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.cli.catalog_list import import_line, listener_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.kernel.catalog import Catalog, EventEntry, ServiceEntry

__all__ = ["catalog_page"]

_WIDTH: Final = 100  # of a signature, before it gets a line for each parameter
_ABOUT_SUBJECTS: Final = """\
An event may have a subject, the scope that it is about. A listener in a scope hears what is about its scope and the
scopes below it; one in no scope hears all. An event without a subject is heard by all, wherever they stand."""


def catalog_page(names: Sequence[str], catalog: Catalog) -> str:
    """The page: events, then services. The same code gives the same page, on every machine.

    Args:
        names: the packages that were read.
        catalog: what they declare.
    """
    return "\n\n".join([*_head(names), *_events(catalog), *_services(catalog)]) + "\n"


def _head(names: Sequence[str]) -> Iterator[str]:
    yield "# Events and services"
    packages = " ".join(name for name in names if name != "foreword")
    command = f"foreword catalog {packages}".strip()
    yield f"<!-- made by: {command} --markdown -->"
    yield f"What `{'`, `'.join(names)}` declare{'s' if len(names) == 1 else ''}, as `{command}` lists it."


def _events(catalog: Catalog) -> Iterator[str]:
    if not catalog.events:
        return
    yield "## Events"
    yield _ABOUT_SUBJECTS
    rows = [f"| `{each.name}` | {each.mode.value} | {_cell(_first(each.doc))} |" for each in catalog.events]
    yield "\n".join(["| event | mode | told when |", "|---|---|---|", *rows])
    for event in catalog.events:
        yield from _event(event)


def _event(event: EventEntry) -> Iterator[str]:
    yield f"### `{event.name}`"
    lines = [import_line(event.home), "", "", *listener_lines(event, _WIDTH)]
    yield "\n".join(["```py", *lines, "```"])
    if event.doc:
        yield event.doc
    yield "\n".join([
        f"* mode: {event.mode.value}; listeners are {event.how}",
        f"* subject: {event.subject or 'none'}",
        f"* errors of listeners {event.errors}",
        f"* declared in `{event.module}`",
    ])  # fmt: skip


def _services(catalog: Catalog) -> Iterator[str]:
    if not catalog.services:
        return
    yield "## Services"
    yield "A plugin asks for a service by annotating a parameter with it; `ctx.require(…)` gives it, too."
    for service in catalog.services:
        yield from _service(service)


def _service(service: ServiceEntry) -> Iterator[str]:
    yield f"### `{service.name}`"
    yield "\n".join(["```py", import_line(service.home), "```"])
    if service.doc:
        yield service.doc
    facts = [f"* declared in `{service.module}`"]
    if service.plugin is not None:
        config = "" if service.config is None else f", config `{service.config}`"
        facts.insert(0, f"* mounted as it is, `ctx.mount({service.name}, …)`: plugin `{service.plugin}`{config}")
    yield "\n".join(facts)


def _first(doc: str) -> str:
    """The first sentence, in one line."""
    paragraph = " ".join(doc.partition("\n\n")[0].split("\n"))
    return paragraph.partition(". ")[0].removesuffix(".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
