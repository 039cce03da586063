"""What is shown: a rendering, and whose prompt it is. Also how a scope is found by its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from foreword.cli.faults import Fault
from foreword.cli.hiding import Hiding
from foreword.errors import did_you_mean
from foreword.kernel.scope import GLOBAL, ScopeKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.errors import EntryRef
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.rendering import Rendering
    from foreword.prompt.spans import Spans
    from foreword.prompt.system_prompt import SystemPrompt
    from foreword.prompt.trace import Trace

__all__ = ["Shown", "scope_of", "shown_of"]


class Rendered(Protocol):
    """What is shown of a prompt: a `Rendering` has it, and a step of a log."""

    @property
    def text(self) -> str:
        """The system text."""
        ...

    @property
    def snapshot(self) -> str:
        """The runtime contexts."""
        ...

    @property
    def spans(self) -> Spans:
        """Of the system text."""
        ...

    @property
    def snapshot_spans(self) -> Spans:
        """Of the runtime contexts."""
        ...

    @property
    def masked_spans(self) -> Spans:
        """Of the system text, without what is sensitive."""
        ...

    @property
    def masked_snapshot_spans(self) -> Spans:
        """Of the runtime contexts, without what is sensitive."""
        ...

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        """In their order."""
        ...

    @property
    def tool_origins(self) -> tuple[Origin | None, ...]:
        """Whose each of them is."""
        ...

    @property
    def trace(self) -> Trace:
        """What each stage did."""
        ...

    @property
    def digest(self) -> str:
        """Of the system text."""
        ...

    @property
    def dropped(self) -> tuple[EntryRef, ...]:
        """What rendered to nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """A rendering, and the scope that it is for."""

    rendering: Rendered
    scope: str | None  # None for the global layer
    is_agent: bool = False  # the scope is an agent of a deployment
    hide: Hiding = field(default_factory=Hiding)  # of what is said about the prompt
    reveal: bool = False  # show what is sensitive, too
    title: str = ""  # what it is, if it is of no scope
    unstored: tuple[str, ...] = ()  # in words, what of it the log does not hold

    @property
    def spans(self) -> Spans:
        """Of the system text, as it may be shown; with the text."""
        return self.rendering.spans if self.reveal else self.rendering.masked_spans

    @property
    def snapshot_spans(self) -> Spans:
        """The same of the snapshot."""
        return self.rendering.snapshot_spans if self.reveal else self.rendering.masked_snapshot_spans


def shown_of(rendering: Rendering, key: ScopeKey) -> Shown:
    """A rendering for a scope."""
    return Shown(rendering, None if key is GLOBAL else key.name)


def scope_of(prompt: SystemPrompt, name: str | None, way_out: str) -> ScopeKey:
    """The scope of that name; for None the one of the view.

    Args:
        prompt: a view.
        name: of a scope that holds something, or "global".
        way_out: what to do where several scopes have the name.

    Raises:
        Fault: there is none, or more than one.
    """
    if name is None:
        return prompt.key
    keys = _chained([GLOBAL, *prompt.scopes, prompt.key])
    named = [key for key in keys if key.name == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise Fault(f'there are {len(named)} scopes called "{name}"; {way_out}')
    raise Fault(f'there is no scope "{name}"; {did_you_mean(name, {key.name for key in keys}, "scopes")}')


def _chained(keys: Iterable[ScopeKey]) -> list[ScopeKey]:
    """The keys and their ancestors, each once."""
    return list(dict.fromkeys(above for key in keys for above in (*key.chain(), key)))
