"""The plugins that installed packages offer, as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.compose.discovery import Discovered

__all__ = ["installed_document", "installed_rows"]

_COLUMNS: Final = (
    Column("plugin", least=16),
    Column("package", least=16),
    Column("version", least=8),
    Column("target", least=24),
    Column("remark", least=20),
)
_NONE: Final = "none: no package offers an entry point of the group foreword.plugins"
_CLASH: Final = "another package offers it, too: uninstall one, or use the target"


def installed_rows(found: Sequence[Discovered], screen: Screen) -> Iterator[Row]:
    """The rows of a table of installed plugins."""
    packages = len({each.distribution for each in found})
    facts = f"{len(found)}, offered by {count(packages, 'package')}" if found else _NONE
    yield from heading("Installed plugins", facts, screen)
    twice = _twice(found)
    if found:
        yield ()
        yield from table(_COLUMNS, [_record(each, twice, screen) for each in found], screen)


def installed_document(found: Sequence[Discovered]) -> dict[str, Any]:
    """The same as JSON."""
    twice = _twice(found)
    plugins = [
        {
            "name": each.name,
            "distribution": each.distribution,
            "version": each.version,
            "target": each.target,
            "is_duplicate": each.name in twice,
        }
        for each in found
    ]
    return {"deployment": None, "installed": plugins}


def _record(each: Discovered, twice: frozenset[str], screen: Screen) -> tuple[Cell, ...]:
    texts = (each.name, each.distribution, each.version, each.target)
    name, *others = (Piece(screen.name(text)) for text in texts)
    remark = (Piece(_CLASH, "red"),) if each.name in twice else ()
    return ((Piece(name.text, "bold"),), *((other,) for other in others), remark)


def _twice(found: Sequence[Discovered]) -> frozenset[str]:
    """The names that more than one package offers."""
    return frozenset(name for name, number in Counter(each.name for each in found).items() if number > 1)
