"""``foreword catalog``: the events and services that packages declare."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from foreword.kernel.catalog import Catalog, Unread

__all__ = ["catalog"]


@click.command(short_help="List the events and services that packages declare.")
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option("--markdown", is_flag=True, help="The same as a page in Markdown.")
@json_option
@traceback_option
def catalog(*, packages: tuple[str, ...], markdown: bool, as_json: bool) -> None:
    """List the events and services of foreword, and of each PACKAGE: what listeners get, what plugins can ask for.

    A PACKAGE is named as in an import: acme, or acme.plugins. To read it, it is imported, with all modules below it
    but __main__; so its code runs. Imports find what stands in the current folder.
    """
    from foreword.cli.catalog_list import catalog_document, catalog_rows
    from foreword.cli.catalog_page import catalog_page
    from foreword.cli.terminal import UNBOUNDED, Screen, warn, write_json, write_rows, write_text

    if markdown and as_json:
        raise click.UsageError("--markdown and --json are two forms of the same; drop one of the two")
    names = list(dict.fromkeys(("foreword", *packages)))
    with _importable() if packages else nullcontext():  # else nothing of the current folder is asked for
        found = _read(names)
        if as_json:
            write_json(catalog_document(names, found))
        elif markdown:
            write_text(catalog_page(names, found).removesuffix("\n"))
        else:
            screen = Screen.of_stdout(fallback=UNBOUNDED)
            write_rows(catalog_rows(names, found, screen), screen)
    if found.unread and not as_json:
        warn(f"not listed, since they cannot be imported here: {_told(found.unread)}")


def _told(unread: Sequence[Unread]) -> str:
    """Modules, by why they could not be imported."""
    by_why: dict[str, list[str]] = {}
    for each in unread:
        by_why.setdefault(each.why, []).append(each.module)
    return "; ".join(f"{', '.join(modules)} ({why})" for why, modules in by_why.items())


@contextmanager
def _importable() -> Generator[None]:
    """Let imports find what stands in the current folder, and places in files be told relative to it."""
    from foreword.cli.folders import here

    before = sys.path.copy()
    current = str(here())
    sys.path[:0] = [] if sys.path[:1] == [current] else [current]
    try:
        yield
    finally:
        sys.path[:] = before


def _read(names: Sequence[str]) -> Catalog:
    from foreword.cli.faults import Fault, others_code
    from foreword.cli.folders import here
    from foreword.kernel import catalog

    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise Fault(f'"{name}" is no package; name one as in an import: acme, or acme.plugins')
    try:
        with others_code(f"importing {' and '.join(names)}"):
            return catalog.catalog(names)
    except Fault as fault:
        missing = fault.__cause__
        if isinstance(missing, ModuleNotFoundError) and any(
            f"{name}.".startswith(f"{missing.name}.") for name in names
        ):
            way_out = "run from the folder it stands in, or install it"
            raise Fault(f'there is no package "{missing.name}" here ({here()}); {way_out}') from missing
        raise
