"""Stage 3, order: put the collected tools in their canonical order.

Sections and contexts come in order from the plan. Tools are known only now: by name in code-point order, or as the
configuration's ``tool_order`` says, with the rest by name at its marker. So the order is a function of the set of
tools, never of who registered or answered first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import ReservedToolNameError, UnknownToolOrderError
from foreword.prompt.contributions import TOOL_ORDER_REST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.draft import Draft

__all__ = ["order_tools"]

_MOST_ORDERS_KEPT = 64  # sets of tools whose order is remembered; scopes mostly share a few


def order_tools(draft: Draft) -> None:
    """Fill in the draft's ordered tools.

    Raises:
        ReservedToolNameError: a tool bears the name that marks the unlisted ones.
        UnknownToolOrderError: ``tool_order`` names tools that no provider knows; all of them at once.
    """
    offered, sources = draft.offered, draft.plan.tools
    if offered.ordered is not None and len(offered.schemas) == len(sources):  # shared, and nobody was left out
        draft.ordered_tools, draft.unchecked_tools = offered.ordered, offered.unchecked
        return
    # tuples made of lists, not of generators: those come from memory that makes the garbage collector count
    answers = tuple([offered.schemas.get(source, ()) for source in sources])
    tool_order = draft.registry.config.tool_order
    memo = draft.plan.memo.tools
    key = tuple([id(answer) for answer in answers])  # the memo keeps the answers, so these ids stay theirs
    known = memo.get(key)
    if known is None:
        _refuse_reserved(draft)
    if tool_order is not None:
        _check_known(draft, tool_order)
    if known is None:
        if len(memo) >= _MOST_ORDERS_KEPT:
            memo.clear()
        ordered = tuple(_in_order((schema for schemas in answers for schema in schemas), tool_order))
        known = memo[key] = (answers, ordered)
    draft.ordered_tools = known[1]
    if len(offered.schemas) == len(sources):
        offered.ordered, offered.unchecked = known[1], draft.unchecked_tools


def _refuse_reserved(draft: Draft) -> None:
    for source, schemas in draft.tool_answers.items():
        for schema in schemas:
            if schema.name == TOOL_ORDER_REST:
                raise ReservedToolNameError(schema.name, str(source.origin))


def _in_order(tools: Iterable[ToolSchema], tool_order: tuple[str, ...] | None) -> list[ToolSchema]:
    """Equal names keep the order in which they were collected."""
    by_name = sorted(tools, key=lambda tool: tool.name)
    if tool_order is None:
        return by_name
    place = {name: at for at, name in enumerate(tool_order)}
    rest = place[TOOL_ORDER_REST]
    return sorted(by_name, key=lambda tool: place.get(tool.name, rest))


def _check_known(draft: Draft, tool_order: tuple[str, ...]) -> None:
    """Tell a typo from a tool that is hidden or, for the moment, not to be had."""
    vouched = draft.known_tools()
    doubtful = tuple(name for name in tool_order if name != TOOL_ORDER_REST and name not in vouched)
    if not doubtful:
        return
    left_out = [source for source in draft.plan.tools if source in draft.left_out]
    known = vouched.union(*(source.memory.known or () for source in left_out))
    unknown = [name for name in doubtful if name not in known]
    # one that never answered could have a tool of any name
    if unknown and all(source.memory.known is not None for source in left_out):
        raise UnknownToolOrderError(unknown, sorted(known))
    draft.unchecked_tools = doubtful
