"""What is trusted, and what it names, as tables and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece
from foreword.compose.discovery import discover
from foreword.compose.secrets import FromEnvironment, parsed
from foreword.errors import DeploymentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from foreword.cli.terminal import Row, Screen
    from foreword.compose.deployment import Deployment, PluginEntry
    from foreword.compose.trust import TrustEntry, TrustStore

__all__ = ["Named", "list_document", "list_rows", "named_by", "named_document", "named_rows"]

_NAMED: Final = (
    Column("plugin", least=16),
    Column("use", least=16),
    Column("from", least=16),
    Column("is given", least=16),
)
_LISTED: Final = Column("file", least=24), Column("state", least=10), Column("sha256", least=16)
_STATES: Final = {"trusted": "green", "changed": "yellow", "gone": "dim", "unreadable": "red"}


# -- what a file names -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """A plugin that a deployment names, and where its code would come from."""

    id: str
    use: str
    code: str  # where from, in words
    variables: tuple[str, ...]  # of the environment, whose values it gets


def named_by(deployment: Deployment) -> list[Named]:
    """What a deployment names; nothing of it is imported."""
    return [
        Named(each.id, each.use, _code(each, deployment.folder), tuple(dict.fromkeys(_variables(each.config))))
        for each in deployment.plugins
    ]


def _code(entry: PluginEntry, folder: Path) -> str:
    module, colon, _ = entry.use.partition(":")
    if not colon:
        offers = [f"{each.distribution} {each.version}" for each in discover() if each.name == entry.use]
        return f"the package {' and '.join(offers)}" if offers else "no package that is installed"
    top = module.partition(".")[0]
    beside = [f"{top}/", *(f"{top}{suffix}" for suffix in all_suffixes())]
    found = [name for name in beside if (folder / name).is_dir() == name.endswith("/") and (folder / name).exists()]
    return f"{', '.join(found)} beside the file" if found else "the installed packages"


def _variables(config: object) -> Iterator[str]:
    if isinstance(config, str):
        yield from (part.name for part in parsed(config)[0] if isinstance(part, FromEnvironment))
    elif hasattr(config, "values"):
        for item in cast("Mapping[str, object]", config).values():
            yield from _variables(item)
    elif isinstance(config, (list, tuple)):
        for item in cast("Sequence[object]", config):
            yield from _variables(item)


def named_rows(deployment: Deployment, so_far: str, screen: Screen) -> Iterator[Row]:
    """The rows that show what a deployment names, and how far it is trusted so far."""
    named = named_by(deployment)
    yield from heading(str(deployment.file), f"names {count(len(named), 'plugin')}, {so_far}", screen)
    records = [
        tuple((Piece(screen.name(text), style),) if text else () for text, style in zip(cells, styles, strict=True))
        for cells, styles in ((_cells(each), ("bold", "", "", "yellow")) for each in named)
    ]
    yield ()
    if records:
        yield from table(_NAMED, records, screen)
        yield ()


def _cells(each: Named) -> tuple[str, str, str, str]:
    return each.id, each.use, each.code, ", ".join(f"${{env:{name}}}" for name in each.variables)


def named_document(deployment: Deployment, entry: TrustEntry) -> dict[str, Any]:
    """The same as JSON, with what went into the list."""
    named = [
        {"id": each.id, "use": each.use, "from": each.code, "environment": list(each.variables)}
        for each in named_by(deployment)
    ]
    return {"path": entry.path, "sha256": entry.sha256, "plugins": named}


# -- the list ----------------------------------------------------------------------------------------------------------


def list_rows(store: TrustStore, screen: Screen) -> Iterator[Row]:
    """The rows of a table of trusted files."""
    entries = store.entries()
    yield from heading("Trusted files", f"{len(entries)}, listed in {store.path}", screen)
    records = [
        (
            (Piece(screen.name(each.path), "bold"),),
            (Piece(state := _state(each, store), _STATES[state]),),
            (Piece(each.sha256, "dim"),),
        )
        for each in entries
    ]
    if records:
        yield ()
        yield from table(_LISTED, records, screen)


def list_document(store: TrustStore) -> dict[str, Any]:
    """The same as JSON."""
    entries = [{"path": each.path, "sha256": each.sha256, "state": _state(each, store)} for each in store.entries()]
    return {"store": str(store.path), "trusted": entries}


def _state(entry: TrustEntry, store: TrustStore) -> str:
    try:
        return "trusted" if store.trusts(entry.path) else "changed"
    except DeploymentError:
        return "unreadable" if Path(entry.path).exists() else "gone"
