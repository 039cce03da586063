"""The proof: every request of a session is rebuilt from its log, and held against what the model got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.cli.log_events import system_digest
from foreword.session.rebuild import rebuild
from foreword.session.verify import verify

if TYPE_CHECKING:
    from foreword.cli.demo.script import Played
    from foreword.session.log import Log
    from foreword.session.rebuild import Rebuilt
    from foreword.session.verify import SessionReport

__all__ = ["Proof", "ProvenStep", "proven"]


@dataclass(frozen=True, slots=True)
class ProvenStep:
    """A step, and how many of its requests were rebuilt to the byte."""

    number: int
    model: str
    system: str  # the digest of its system text, in hex
    tools: int
    messages: int
    requests: int
    equal: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of it."""

    steps: tuple[ProvenStep, ...]
    size: int  # bytes of all requests that were rebuilt
    report: SessionReport

    @property
    def requests(self) -> int:
        """How many requests the log has."""
        return sum(step.requests for step in self.steps)

    @property
    def equal(self) -> int:
        """How many of them were rebuilt just as the model got them."""
        return sum(step.equal for step in self.steps)


async def proven(log: Log, played: Played) -> Proof:
    """Rebuild every request of a session that was played, and verify it."""
    steps: list[ProvenStep] = []
    sent, size = list(played.sent), 0
    for number in range(1, (await log.view(played.session)).steps + 1):
        rebuilt = await _attempts(log, f"{played.session}@{number}")
        got, sent = sent[: len(rebuilt)], sent[len(rebuilt) :]
        size += sum(len(each.canonical) for each in rebuilt)
        equal = sum(each.canonical == one for each, one in zip(rebuilt, got, strict=False))
        steps.append(_step(rebuilt[-1], len(rebuilt), equal))
    verification = await verify(log, played.session)
    return Proof(tuple(steps), size, verification.sessions[0])


async def _attempts(log: Log, step: str) -> list[Rebuilt]:
    count = (await log.locate(step)).attempts
    return [await rebuild(log, f"{step}/{attempt}") for attempt in range(1, count + 1)]


def _step(last: Rebuilt, requests: int, equal: int) -> ProvenStep:
    request = last.request
    counts = len(request.tools), len(request.messages), requests, equal
    return ProvenStep(last.location.number, request.config.model, system_digest(last.header), *counts)
