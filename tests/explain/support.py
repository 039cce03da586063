"""What the tests of explanations share: random registries with a model of their own, and sessions written by hand."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from foreword import Rendering, SystemPrompt, ToolSchema
from foreword.explain import Subject, subject_of
from foreword.session import (
    RUNTIME_CONTEXT,
    AssistantSaid,
    ContextPart,
    HeaderWritten,
    Log,
    MessageSource,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
    step_trace,
    verify_request,
)
from foreword.testing.memory_store import MemoryStore
from foreword.wire.chunks import Usage
from foreword.wire.messages import AssistantMessage, Message, UserMessage
from foreword.wire.request import ModelConfig

OPENAI = ModelConfig("openai", "gpt-5.2")


# -- a prompt, and a model of it that knows nothing of ours -------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """What the model says about a stretch: whose, in which section, of which variable."""

    text: str
    owner: str
    section: str | None = None
    variable: str | None = None


@dataclass
class Model:
    """A prompt as a list of pieces, put together by the rules of the contract, read anew."""

    sections: list[tuple[float, int, str, str, list[str | tuple[str, str]]]] = field(default_factory=list)
    values: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: value, owner

    def pieces(self) -> list[Piece]:
        told: list[list[Piece]] = []
        for _, _, name, owner, template in sorted(self.sections, key=lambda each: each[:2]):
            made = [
                Piece(part, owner, name)
                if isinstance(part, str)
                else Piece(self.values[part[1]][0], self.values[part[1]][1], name, part[1])
                for part in template
            ]
            made = list(joined(piece for piece in made if piece.text))
            if made:
                told.append(made)
        whole: list[Piece] = []
        for at, group in enumerate(told):
            whole += ([Piece("\n\n", "assembler")] if at else []) + group
        return whole

    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces())

    def between(self, start: int, end: int) -> list[Piece]:
        """The pieces of a stretch; neighbouring literals of one section are one piece, as they are one text."""
        found: list[Piece] = []
        at = 0
        for piece in self.pieces():
            text = piece.text[max(start - at, 0) : max(end - at, 0)]
            if text:
                found.append(replace(piece, text=text))
            at += len(piece.text)
        return found


def joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Neighbouring literals of one section as one: they are one text."""
    last: Piece | None = None
    for piece in pieces:
        mine = (piece.owner, piece.section, None)
        if last is not None and piece.variable is None and (last.owner, last.section, last.variable) == mine:
            last = replace(last, text=last.text + piece.text)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


WORDS = ("alpha", "beta", "Grüße", "日本", "🦉", "x", "line\nbreak", "one two", "{ }", "$&")
OWNERS = ("acme", "legal", "sales", "ops")


def random_prompt(seed: int) -> tuple[SystemPrompt, Model]:
    """A random registry, and the model of what it renders to. Each literal is tagged, so that it stands there once."""
    rng, prompt, model = random.Random(seed), SystemPrompt(), Model()
    names = [f"v{number}" for number in range(rng.randint(0, 4))]
    for name in names:
        value, owner = rng.choice(("", "29", "Acme & co", "a\nb", "Zoë")), rng.choice(OWNERS)
        view(prompt, owner).variable(name, value)
        model.values[name] = value, owner
    for number in range(rng.randint(1, 8)):
        owner, order, name = rng.choice(OWNERS), rng.choice((-5, 0, 1, 1, 2.5, 9)), f"s{number}"
        template: list[str | tuple[str, str]] = []
        for part in range(rng.randint(0, 4)):
            if names and rng.random() < 0.4:
                template.append(("ref", rng.choice(names)))
            else:
                template.append(f"<{name}.{part}:{rng.choice(WORDS)}>")
        text = "".join(part if isinstance(part, str) else f"{{{{{part[1]}}}}}" for part in template)
        view(prompt, owner).section(name, text if rng.random() < 0.5 else giver(text), order=order)
        model.sections.append((order, number, name, owner, template))
    return prompt, model


def view(prompt: SystemPrompt, owner: str) -> SystemPrompt:
    return prompt.owner(owner)


def giver(text: str) -> Callable[[], str]:
    return lambda: text


# -- a session, written by hand -----------------------------------------------------------------------------------------


@dataclass
class Clock:
    """A clock that a test moves by hand; each look takes a millisecond."""

    now: int = 1_700_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Script:
    """Writes requests into a session, as an agent's loop does."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self.session, self.clock, self.number = session, clock, 0

    def step(
        self,
        rendering: Rendering,
        *said: str,
        config: ModelConfig = OPENAI,
        usage: Usage | None = None,
        traced: bool = True,
        answer: str = "Yes.",
        attempts: int = 1,
    ) -> None:
        """A turn of one step: the prompt, what is said, and the answer."""
        session = self.session
        session.append(TurnStart(session.turn + 1))
        session.append(StepStart(session.turn, 1, step_trace(rendering) if traced else None))
        for text in said:
            session.append(UserSaid(UserMessage(text)))
        if rendering.snapshot and session.held_snapshot.text != rendering.snapshot:
            parts = tuple(ContextPart(name, text) for name, text in contexts_of(rendering))
            session.append(UserSaid(UserMessage(rendering.snapshot), MessageSource(RUNTIME_CONTEXT, "foreword", parts)))
        header = RequestHeader.of(rendering, config)
        if session.header != header:
            session.append(HeaderWritten(header, "initial" if session.header is None else "change"))
        for attempt in range(1, attempts + 1):
            session.append(RequestAttempted(session.turn, 1, attempt))
            verify_request(session, header.request(session.messages))
            session.append(RequestEnded(session.turn, 1, attempt, "stop", usage))
        session.append(AssistantSaid(session.turn, 1, AssistantMessage(answer)))
        session.append(StepEnd(session.turn, 1))
        session.append(TurnEnd(session.turn, "completed"))


def contexts_of(rendering: Rendering) -> Iterable[tuple[str, str]]:
    parts = subject_of(rendering).contexts
    return [(part.name, part.text) for part in parts]


@asynccontextmanager
async def a_log(clock: Clock | None = None) -> AsyncIterator[Log]:
    async with MemoryStore() as store, open_log(store, clock=clock or Clock()) as log:
        yield log


# -- subjects -----------------------------------------------------------------------------------------------------------


def a_subject(
    build: Callable[[SystemPrompt], object],
    *messages: Message,
    config: ModelConfig | None = OPENAI,
    **changes: Any,
) -> Subject:
    """The subject of a prompt that a function fills."""
    from foreword.explain import RequestMessage

    prompt = SystemPrompt()
    build(prompt)
    subject = subject_of(prompt.render_sync(), config=config)
    return replace(subject, messages=tuple(map(RequestMessage, messages)), **changes)


def tool(name: str, description: str = "Does it.") -> ToolSchema:
    return ToolSchema(name, description, {"type": "object"})
