"""The plugins of a deployment as a table and as JSON: which they are, how they fare, and what each contributes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from foreword.cli.as_json import ref_as_json, without_secrets
from foreword.cli.faults import in_one_line
from foreword.cli.folders import sources_from
from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.hiding import Hiding
    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.compose.loading import App, PluginStatus
    from foreword.errors import EntryRef
    from foreword.prompt.rendering import Rendering

__all__ = ["Contributor", "contributors", "plugin_document", "plugin_rows"]

_FIRST: Final = ("section", "context", "tool", "tool provider", "variable", "listener")
_STYLES: Final = {"active": "green", "disabled": "dim"}
_COLUMNS: Final = (
    Column("plugin", least=16),
    Column("state", least=8),
    Column("owner", least=16),
    Column("version", least=8),
    Column("use", least=16),
    Column("contributes", least=32),
)


@dataclass(frozen=True, slots=True)
class Contributor:
    """A plugin of a deployment, with the tools that its providers name."""

    status: PluginStatus
    tools: tuple[str, ...]


async def contributors(app: App) -> list[Contributor]:
    """All plugins of an open deployment. Its prompt is assembled, since only that tells the names of tools."""
    with sources_from(app.deployment.folder):
        statuses = app.plugins
    try:
        rendering = await app.prompt.render()
    except Exception as error:  # anything at all: a provider is the plugin's code
        why = in_one_line(app.secrets.hide(f"{type(error).__name__}: {error}"))
        warn(f"the prompt cannot be assembled, so the names of tools are not known: {why}")
        return [Contributor(status, ()) for status in statuses]
    with sources_from(app.deployment.folder):
        return [Contributor(status, _tools(status, rendering)) for status in statuses]


def _tools(status: PluginStatus, rendering: Rendering) -> tuple[str, ...]:
    providers = {(ref.owner, ref.source) for ref in status.contributions if ref.kind == "tool provider"}
    return tuple(
        tool.name
        for tool, origin in zip(rendering.tools, rendering.tool_origins, strict=True)
        if origin is not None and (origin.owner, str(origin.source)) in providers
    )


# -- for people --------------------------------------------------------------------------------------------------------


def plugin_rows(file: str, found: Sequence[Contributor], screen: Screen) -> Iterator[Row]:
    """The rows of a table of plugins."""
    states = Counter(each.status.state for each in found)
    facts = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "it names none"
    yield from heading(f"Plugins of {file}", facts, screen)
    if found:
        yield ()
        yield from table(_COLUMNS, [_record(each, screen) for each in found], screen)


def _record(each: Contributor, screen: Screen) -> tuple[Cell, ...]:
    status = each.status
    lines = [screen.name(line) for line in _contributions(each)]
    if not lines and status.state == "active":
        lines = ["nothing"]
    return (
        (Piece(screen.name(status.id), "bold"),),
        (Piece(status.state, _STYLES.get(status.state, "red")),),
        (Piece(screen.name(status.name)),) if status.name else (),
        (Piece(screen.name(status.version)),) if status.version else (),
        (Piece(screen.name(status.use)),),
        tuple(Piece(line) for line in lines),
    )


def _contributions(each: Contributor) -> list[str]:
    """What a plugin contributes: a line for each kind, with how many there are and their names."""
    by_kind: dict[str, list[str]] = {kind: [] for kind in _FIRST}
    by_kind["tool"] += each.tools
    for ref in each.status.contributions:
        if ref.kind != "tool provider" or not each.tools:
            by_kind.setdefault(ref.kind, []).append(_name(ref))
    told = {count(len(names), kind): ", ".join(names) for kind, names in by_kind.items() if names}
    width = max(map(len, told), default=0)
    return [f"{what.ljust(width)}  {names}" for what, names in told.items()]


def _name(ref: EntryRef) -> str:
    return ref.name if ref.scope is None else f"{ref.name} (in scope {ref.scope})"


# -- for programs ------------------------------------------------------------------------------------------------------


def plugin_document(file: str, found: Sequence[Contributor], hide: Hiding) -> dict[str, Any]:
    """The same as JSON."""
    return {"deployment": file, "plugins": [without_secrets(_plugin(each), hide) for each in found]}


def _plugin(each: Contributor) -> dict[str, Any]:
    status = each.status
    return {
        "id": status.id,
        "use": status.use,
        "owner": status.name or None,
        "version": status.version,
        "state": status.state,
        "contributions": [ref_as_json(ref) for ref in status.contributions],
        "tools": list(each.tools),
    }
