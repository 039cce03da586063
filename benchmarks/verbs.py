"""How long each command takes on a session of 1,000 steps, start-up aside: what a user waits for who asks a log.

    python benchmarks/verbs.py [STEPS]

The goals: ``cache`` on the whole session under three seconds, every other command under one; in the processor's time,
which others on the machine do not stretch. Each step tells a new
fact; every fiftieth, a section changes; every hundredth, the history is compacted, as in a session of that length.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from tempfile import TemporaryDirectory
from time import process_time

import anyio
from click.testing import CliRunner

from foreword import SystemPrompt, ToolSchema
from foreword.cli.main import main
from foreword.session import (
    RUNTIME_CONTEXT,
    AssistantSaid,
    ContextPart,
    HeaderWritten,
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
)
from foreword.session.trace import StepTrace
from foreword.wire.chunks import Usage
from foreword.wire.messages import AssistantMessage, UserMessage
from foreword.wire.request import ModelConfig

STEPS = 1000
SECTIONS, TOOLS = 40, 15
CHANGED_EVERY, COMPACTED_EVERY = 50, 100  # steps
MOST = {"cache last": 3.0}  # seconds
MOST_OF_OTHERS = 1.0
ROUNDS = 2

VERBS = (
    "show last@{middle} --annotate",
    "explain last Section --json",
    "explain last --line 3",
    "explain last --missing owner1:1",
    "diff last",
    "diff last@{middle}",
    "diff last@1 last",
    "tokens last",
    "cache last",
    "cache last@{middle}",
    "lint last",
    "log list",
    "log find --text needle",
    "log find --section owner1:1",
    "log show last@{middle}",
    "log show last",
    "log rebuild last@{middle}",
    "log verify last",
    "log head last",
)


def build(now: list[int]) -> SystemPrompt:
    """A prompt as an agent of some size has it; ``now`` holds the number of the step."""
    prompt = SystemPrompt(persona="You are a clerk.")
    for at in range(SECTIONS):
        prompt.owner(f"owner{at}").section(f"owner{at}:1", f"Section {at}. {'Mind this. ' * 20}", order=at + 1)
    prompt.owner("flags").section("flags", lambda: f"Flags of {now[0] // CHANGED_EVERY}.", order=20)
    prompt.owner("clock").context("clock", lambda: f"It is step {now[0]}.", order=1)
    prompt.owner("shop").tools([ToolSchema(f"tool_{at}", "Does it.", {"type": "object"}) for at in range(TOOLS)])
    return prompt


async def log_session(steps: int) -> None:
    """Write the session into ``foreword.db`` here."""
    now = [0]
    prompt, config = build(now), ModelConfig("openai", "gpt-5")
    async with open_log("sqlite:foreword.db") as log:
        session = await log.create("long")
        trace: StepTrace | None = None
        for number in range(1, steps + 1):
            now[0] = number
            trace = take_turn(session, prompt, config, number, trace)
            if number % CHANGED_EVERY == 0:
                await session.flush()
        await session.close()


def take_turn(
    session: Session, prompt: SystemPrompt, config: ModelConfig, number: int, last: StepTrace | None
) -> StepTrace:
    """A turn of one step."""
    rendering = prompt.render_sync()
    trace = step_trace(rendering, last)
    header = RequestHeader.of(rendering, config)
    session.append(TurnStart(number))
    session.append(StepStart(number, 1, trace))
    session.append(
        UserSaid(UserMessage("Where is the needle?" if number == STEPS // 2 else f"Where is order {number}?"))
    )
    parts = (ContextPart("clock", f"It is step {number}."),)
    session.append(UserSaid(UserMessage(rendering.snapshot), MessageSource(RUNTIME_CONTEXT, "foreword", parts)))
    if session.header != header:
        session.append(HeaderWritten(header, "initial" if session.header is None else "change"))
    session.append(RequestAttempted(number, 1, 1))
    session.append(RequestEnded(number, 1, 1, "stop", Usage(1000, 20, 900)))
    session.append(AssistantSaid(number, 1, AssistantMessage(f"Order {number} waits for stock. " * 3)))
    session.append(StepEnd(number, 1))
    session.append(TurnEnd(number, "completed"))
    if number % COMPACTED_EVERY == 0:
        session.replace_history(0, len(session.messages) - 1, UserMessage(f"What was said up to {number}."))
    return trace


def seconds(arguments: list[str]) -> float:
    """How long a command takes that is loaded already."""
    start = process_time()
    done = CliRunner().invoke(main, arguments)
    taken = process_time() - start
    if done.exit_code not in (0, 1):
        raise SystemExit(f"foreword {' '.join(arguments)}: {done.output}")
    return taken


def measured(steps: int) -> dict[str, float]:
    """The seconds of each command on a session of so many steps, by how it is typed."""
    with TemporaryDirectory() as folder, chdir(folder):
        anyio.run(log_session, steps)
        found: dict[str, float] = {}
        for verb in VERBS:
            arguments = verb.format(middle=steps // 2).split()
            found[" ".join(arguments)] = min(seconds(arguments) for _ in range(ROUNDS))
        return found


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    print(f"{asked:,} steps, {SECTIONS} sections, {TOOLS} tools")
    for verb, taken in measured(asked).items():
        most = MOST.get(verb, MOST_OF_OTHERS)
        print(f"{taken:7.3f} s  foreword {verb:40}{'' if taken <= most else f'  missed: {most:.0f} s'}".rstrip())
