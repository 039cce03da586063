"""What is shown: a rendering, and whose prompt it is. Also how a scope is found by its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foreword.cli.faults import Fault
from foreword.cli.hiding import Hiding
from foreword.errors import did_you_mean
from foreword.kernel.scope import GLOBAL, ScopeKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.prompt.rendering import Rendering
    from foreword.prompt.system_prompt import SystemPrompt

__all__ = ["Shown", "scope_of", "shown_of"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A rendering, and the scope that it is for."""

    rendering: Rendering
    scope: str | None  # None for the global layer
    is_agent: bool = False  # the scope is an agent of a deployment
    hide: Hiding = field(default_factory=Hiding)  # of what is said about the prompt


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
