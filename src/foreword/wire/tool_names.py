"""Tool names, held against a provider's rules before anything is sent. Names of tools go over the wire as they are.

A name that the provider refuses would fail every request of the session, far from the plugin that chose it; of two
tools with one name, a call could not be told from the other's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from foreword.errors import EntryRef, InvalidToolNameError, ToolNameCollisionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.wire.profiles import ToolNameRule

__all__ = ["check_tool_names", "cleaned_name"]

_NOT_IN_NAMES: Final = re.compile("[^a-zA-Z0-9_-]")


def check_tool_names(
    tools: Sequence[ToolSchema], rule: ToolNameRule, provider: str, origins: Sequence[Origin | None] = ()
) -> None:
    """See that a provider takes the names of some tools.

    Args:
        tools: the tools, in their order.
        rule: which names it accepts.
        provider: its name, for the message.
        origins: who brought each of the tools, as far as known; in the same order.

    Raises:
        InvalidToolNameError: the first name that the provider refuses; names its owner.
        ToolNameCollisionError: the first name that two tools bear; names both owners.
    """
    seen: dict[str, EntryRef] = {}
    for index, tool in enumerate(tools):
        ref = _ref(tool, origins[index] if index < len(origins) else None)
        if not rule.accepts(tool.name):
            raise InvalidToolNameError(ref, provider, rule.words)
        if tool.name in seen:
            raise ToolNameCollisionError(tool.name, seen[tool.name], ref)
        seen[tool.name] = ref


def cleaned_name(name: str, longest: int) -> str:
    """The name of a call, which a model may have made up, so that every provider takes it back in a history."""
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "_"


def _ref(tool: ToolSchema, origin: Origin | None) -> EntryRef:
    return EntryRef("tool", tool.name, "an unknown owner") if origin is None else origin.ref("tool", tool.name)
