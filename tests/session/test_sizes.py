"""What a step costs in the store: the bytes in all rows, by a prompt of a hundred sections."""

from __future__ import annotations

import itertools

import pytest
from tests.session.support import SEARCH, Shelf, Stores, answer, attempt, header_of

from foreword import SystemPrompt, ToolSchema
from foreword.session import Log, Session, StepEnd, StepStart, TurnStart, UserSaid, step_trace
from foreword.wire.messages import UserMessage

pytestmark = pytest.mark.anyio

QUESTION, ANSWER = "Why is order 4711 late?", "It waits for stock."


def big_prompt() -> tuple[SystemPrompt, dict[int, str]]:
    prompt, told = SystemPrompt(), {number: f"Section {number}. " * 40 for number in range(100)}
    for number in told:
        prompt.section(f"clerk:section-{number:03}", lambda number=number: told[number], order=number)  # type: ignore[misc]
    prompt.variable("who", "Ada")
    prompt.context("git", lambda: "main, clean", order=1)
    prompt.tools([ToolSchema(f"tool-{number}", SEARCH.description, SEARCH.parameters) for number in range(20)])
    return prompt, told


def step(session: Session, prompt: SystemPrompt) -> None:
    rendering = prompt.render_sync()
    session.append(StepStart(1, session.step + 1, step_trace(rendering, session.trace)))
    session.append(UserSaid(UserMessage(QUESTION)))
    attempt(session, header_of(rendering))
    answer(session, ANSWER)
    session.append(StepEnd(1, session.step))


async def size_after(log: Log, session: Session, prompt: SystemPrompt) -> int:
    step(session, prompt)
    await session.flush()
    return (await Shelf.of(log.store)).size()


async def test_what_steps_cost(stores: Stores) -> None:
    """A step with an unchanged header takes less than 5 KB besides its messages' content; where one section of a
    hundred changes, the header adds that text and less than 2 KB."""
    prompt, told = big_prompt()
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))
        sizes = [await size_after(log, session, prompt)]
        sizes.append(await size_after(log, session, prompt))
        for number in (0, 55, 99):
            told[number] = f"Now section {number} says this. " * 30
            sizes.append(await size_after(log, session, prompt))
        steps = [after - before for before, after in itertools.pairwise(sizes)]
        unchanged, *changed = (each - len(QUESTION) - len(ANSWER) for each in steps)
        assert unchanged < 5_000
        for number, cost in zip((0, 55, 99), changed, strict=True):
            assert cost - unchanged - len(told[number]) < 2_000


async def test_what_a_section_with_variables_costs(stores: Stores) -> None:
    """It is the same where the section holds variables: another value, and another text round them, move the boundaries
    of its spans, which are told without a new trace."""
    prompt, told = big_prompt()
    who = ["Ada"]
    prompt.variable("clock", lambda: who[0])
    told[40] = "It serves {{clock}}, and {{who}}. " * 10
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))
        sizes = [await size_after(log, session, prompt)]
        sizes.append(await size_after(log, session, prompt))
        traces = {None if session.trace is None else session.trace.digest}
        texts: list[str] = []
        for text, value in [
            (told[40], "Grace H."),
            ("Now it serves {{clock}}, and {{who}}. " * 10, "Grace H."),
            ("Then {{clock}} again, and {{who}}. " * 10, "Katherine"),
        ]:
            told[40], who[0] = text, value
            sizes.append(await size_after(log, session, prompt))
            traces.add(None if session.trace is None else session.trace.digest)
            texts.append(prompt.render_sync().sections[40])
        steps = [after - before for before, after in itertools.pairwise(sizes)]
        unchanged, *changed = (each - len(QUESTION) - len(ANSWER) for each in steps)
        assert unchanged < 5_000
        for text, cost in zip(texts, changed, strict=True):
            assert cost - unchanged - len(text) < 2_000
        assert len(traces) == 1  # none of them needed a new one


async def test_what_a_changed_trace_costs(stores: Stores) -> None:
    """A context that falls silent changes the trace and no header: the step takes less than 5 KB, for a hundred sections."""
    prompt, _ = big_prompt()
    mood = ["calm"]
    prompt.context("mood", lambda: mood[0], order=2)
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))
        before = await size_after(log, session, prompt)
        mood[0] = ""
        silent = await size_after(log, session, prompt)
        assert silent - before < 5_000
        mood[0] = "calm"
        again = await size_after(log, session, prompt)
        assert again - silent < 2_500  # as in a step where nothing changed: those blobs are there
