"""Tokens by owner: what each section, variable, context and tool of a prompt costs.

Each text that the model reads as one (the system text, the snapshot, a tool's schema, a message) is tokenised once and
whole. A token belongs to whoever owns its first byte. So the parts add up to the whole, exactly. What a provider adds
of its own (the frames round messages and tools) is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.errors import MiscountedTokensError
from foreword.explain.provenance import message_owner, origin_to_json
from foreword.explain.tokenizers import Tokenizer, tokenizer_for
from foreword.prompt.origin import Origin
from foreword.wire.messages import AssistantMessage
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from foreword.explain.subject import PartTool, RequestMessage, Subject
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.spans import Spans
    from foreword.wire.messages import Message

__all__ = ["Cost", "CostKind", "OwnerCost", "TokenReport", "message_text", "tokens_of"]

CostKind: TypeAlias = Literal["section", "variable", "context", "tool", "message", "separator"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one part of a prompt costs.

    A section or context counts without the values of variables in it: those are costs of their own, whoever's text
    they stand in. Messages are summed up by who they are from.
    """

    kind: CostKind
    name: str
    origin: Origin
    tokens: int
    bytes: int

    @property
    def owner(self) -> str:
        """The plugin that pays for it."""
        return self.origin.owner

    def to_json(self) -> dict[str, JsonValue]:
        """The cost as JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "tokens": self.tokens,
            "bytes": self.bytes,
            **origin_to_json(self.origin),
        }


@dataclass(frozen=True, slots=True)
class OwnerCost:
    """What all parts of one owner cost."""

    owner: str
    tokens: int
    bytes: int
    parts: int

    def to_json(self) -> dict[str, JsonValue]:
        """The cost as JSON."""
        return {"owner": self.owner, "tokens": self.tokens, "bytes": self.bytes, "parts": self.parts}


@dataclass(frozen=True, slots=True)
class TokenReport:
    """What a prompt costs.

    Attributes:
        title: which prompt.
        tokenizer: what it was counted with.
        is_estimate: whether those are not the model's own tokens.
        costs: of all parts, the largest first.
        unstored: in words, what the log does not hold: counted is what stands in its place.
    """

    title: str
    tokenizer: str
    is_estimate: bool
    costs: tuple[Cost, ...]
    unstored: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Tokens of the whole."""
        return sum(cost.tokens for cost in self.costs)

    @property
    def bytes(self) -> int:
        """Bytes of the whole."""
        return sum(cost.bytes for cost in self.costs)

    def of(self, kind: CostKind, name: str | None = None) -> int:
        """Tokens of the parts of a kind, or of those of a name among them."""
        return sum(cost.tokens for cost in self.costs if cost.kind == kind and name in (None, cost.name))

    @property
    def owners(self) -> tuple[OwnerCost, ...]:
        """What each owner costs, the largest first."""
        found: dict[str, list[Cost]] = {}
        for cost in self.costs:
            found.setdefault(cost.owner, []).append(cost)
        summed = [
            OwnerCost(owner, sum(each.tokens for each in costs), sum(each.bytes for each in costs), len(costs))
            for owner, costs in found.items()
        ]
        return tuple(sorted(summed, key=lambda each: (-each.tokens, each.owner)))

    def over(self, budget: int) -> int:
        """By how many tokens the whole is over a budget; 0 if it is not."""
        return max(0, self.total - budget)

    def to_json(self) -> dict[str, JsonValue]:
        """The report as JSON."""
        return {
            "title": self.title,
            "tokenizer": self.tokenizer,
            "is_estimate": self.is_estimate,
            "unstored": list(self.unstored),
            "tokens": self.total,
            "bytes": self.bytes,
            "parts": [cost.to_json() for cost in self.costs],
            "owners": [owner.to_json() for owner in self.owners],
        }


def tokens_of(subject: Subject, tokenizer: Tokenizer | None = None) -> TokenReport:
    """What each part of a prompt costs in tokens.

    Args:
        subject: the prompt. Of a request from the log the history is counted, too.
        tokenizer: None for that of the subject's model.

    Raises:
        MiscountedTokensError: the tokenizer's tokens do not make up a text.
    """
    counter = tokenizer or tokenizer_for(subject.config)
    sums: dict[tuple[CostKind, str, str, str | None], Cost] = {}
    for cost in _costs(subject, counter):
        key = (cost.kind, cost.name, cost.owner, cost.origin.scope)
        known = sums.get(key)
        sums[key] = cost if known is None else _plus(known, cost)
    costs = sorted(sums.values(), key=lambda cost: (-cost.tokens, cost.kind, cost.name, cost.owner))
    return TokenReport(subject.title, counter.name, counter.is_estimate, tuple(costs), subject.unstored)


def message_text(message: Message) -> str:
    """What is counted of a message: its text, and the tool calls as JSON."""
    if isinstance(message, AssistantMessage) and message.tool_calls:
        return message.text + canonical_json([call.to_json() for call in message.tool_calls]).decode()
    return message.text


# -- counting ----------------------------------------------------------------------------------------------------------


def _plus(one: Cost, other: Cost) -> Cost:
    return Cost(one.kind, one.name, one.origin, one.tokens + other.tokens, one.bytes + other.bytes)


def _costs(subject: Subject, counter: Tokenizer) -> Iterator[Cost]:
    for tool in subject.tools:
        yield _tool_cost(tool, counter)
    yield from _span_costs(subject.spans, "section", counter)
    if not any(message.is_snapshot for message in subject.messages):
        yield from _span_costs(subject.snapshot_spans, "context", counter)
    for message in subject.messages:
        if message.is_snapshot and message.message.text == subject.snapshot:
            yield from _span_costs(subject.snapshot_spans, "context", counter)
        else:
            yield _message_cost(message, counter)


def _tool_cost(tool: PartTool, counter: Tokenizer) -> Cost:
    text = tool.text
    return Cost("tool", tool.name, tool.origin, len(counter.sizes(text)), len(text.encode()))


def _message_cost(message: RequestMessage, counter: Tokenizer) -> Cost:
    text, owner = message_text(message.message), message_owner(message)
    return Cost("message", owner, Origin(owner), len(counter.sizes(text)), len(text.encode()))


def _span_costs(spans: Spans, kind: Literal["section", "context"], counter: Tokenizer) -> Iterator[Cost]:
    stretches = spans.utf8()
    if not stretches:
        return
    sizes = counter.sizes(spans.text)
    if sum(sizes) != stretches[-1].end:
        raise MiscountedTokensError(counter.name, sum(sizes), stretches[-1].end)
    counted = _tokens_by_stretch(sizes, [stretch.end for stretch in stretches])
    for stretch, tokens in zip(stretches, counted, strict=True):
        size = stretch.end - stretch.start
        if stretch.variable is not None:
            yield Cost("variable", stretch.variable, stretch.origin, tokens, size)
        elif stretch.kind == "separator":
            yield Cost("separator", "between sections" if kind == "section" else "snapshot frame", stretch.origin,
                       tokens, size)  # fmt: skip
        else:
            origin = stretch.section_origin or stretch.origin
            yield Cost(kind, stretch.section or "", origin, tokens, size)


def _tokens_by_stretch(sizes: Sequence[int], ends: Sequence[int]) -> list[int]:
    """How many tokens begin in each of some stretches that cover a text; all positions in bytes."""
    counted = [0] * len(ends)
    at = stretch = 0
    for size in sizes:
        while at >= ends[stretch]:
            stretch += 1
        counted[stretch] += 1
        at += size
    return counted
