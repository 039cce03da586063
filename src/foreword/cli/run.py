"""``foreword run``: have an agent of a deployment answer, by a real model, and log it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from foreword.cli.logs import log_option
from foreword.cli.options import reveal_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from foreword.agent.agent import Agent
    from foreword.agent.stream import ToolCallFinished, TurnEvent, TurnFinished
    from foreword.cli.interrupts import Interrupts
    from foreword.cli.run_output import Output
    from foreword.compose.loading import App
    from foreword.session.events import ToolAnswered

__all__ = ["run"]

_FILES: Final = (".yaml", ".yml", ".toml")
_CODES: Final = {"completed": 0, "blocked": 1, "max-tokens": 1, "aborted": 130}


@click.command(short_help="Have an agent answer, by a real model, and log it.")
@click.argument("words", nargs=-1, metavar="[FILE] TEXT")
@click.option("--agent", metavar="NAME", help="Which agent of the deployment; not needed where there is only one.")
@click.option("--model", metavar="PROVIDER:MODEL", help="Another model than the deployment's, as in openai:gpt-5.")
@click.option("--session", metavar="ID", help="Go on with this session, or with last, instead of a new one.")
@click.option("--label", "labels", metavar="NAME=TEXT", multiple=True, help="Label the new session; may be repeated.")
@log_option
@click.option("--json", "as_json", is_flag=True, help="What happens as JSON, an object a line.")
@reveal_option
@traceback_option
def run(
    *,
    words: Sequence[str],
    agent: str | None,
    model: str | None,
    session: str | None,
    labels: Sequence[str],
    store: str | None,
    as_json: bool,
    reveal: bool,
) -> int:
    """Tell an agent TEXT and print what it answers; everything is logged. With - for TEXT, it is read from stdin.

    FILE is a deployment file (.yaml, .yml, .toml); without one it is foreword.yaml, .yml or .toml of the current
    folder, if you trust it (see foreword trust).

    The answer goes to stdout, all else to stderr. The exit code is 0 for a whole answer, 1 for one that was cut by the
    model's limit or blocked by a listener, 2 for an error. Ctrl-C cancels the turn and waits until that is logged; a
    second one leaves at once. Both give 130.

    Models of Anthropic need the variable ANTHROPIC_API_KEY, those of OpenAI OPENAI_API_KEY, those of DeepSeek
    DEEPSEEK_API_KEY. ANTHROPIC_BASE_URL and OPENAI_BASE_URL lead to any other server that speaks the format of the one
    or the other.
    """
    from foreword.cli.deployments import answer_of
    from foreword.cli.interrupts import Interrupts
    from foreword.cli.logs import given_store

    file, text = _taken_apart(words)
    asked = _Asked(text, agent, model, session, _labels(labels, session), given_store(store), as_json, reveal)
    interrupts, out = Interrupts(), sys.stdout  # while the deployment's code runs, what it prints goes to stderr

    async def ask(app: App) -> TurnFinished:
        return await _turn(app, asked, _output(asked, out, app.secrets.hide), interrupts)

    with interrupts.heard(), answer_of(file, "running", ask, log=asked.store) as answer:
        return _CODES.get(answer.value.reason, 2)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was typed."""

    text: str
    agent: str | None
    model: str | None
    session: str | None
    labels: Mapping[str, str] | None
    store: str | None  # where to log it; None for where the deployment says
    as_json: bool
    reveal: bool  # arguments and results of sensitive tools, too


def _taken_apart(words: Sequence[str]) -> tuple[str | None, str]:
    """The file, if one was named, and what the agent is to be told."""
    file = words[0] if words and words[0].endswith(_FILES) else None
    said = words if file is None else words[1:]
    if len(said) > 1:
        raise click.UsageError(f'"{said[0]}" and "{said[1]}": what the agent is told is one argument; put it in quotes')
    if not said:
        raise click.UsageError('say what the agent is to be told: foreword run "…", or - to read it from stdin')
    text = sys.stdin.read() if said[0] == "-" else said[0]
    if not text.strip():
        raise click.UsageError("what the agent is to be told is empty")
    return file, text


def _labels(given: Sequence[str], session: str | None) -> dict[str, str] | None:
    if given and session is not None:
        raise click.UsageError("--label is for a new session; --session goes on with one that has its labels")
    pairs = [each.partition("=") for each in given]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.UsageError(f'"{name}" is no label; write --label NAME=TEXT')
    return {name: text for name, _, text in pairs} or None


def _output(asked: _Asked, out: TextIO, hide: Callable[[str], str]) -> Output:
    from foreword.cli.run_output import JsonOutput, TextOutput

    return JsonOutput(out) if asked.as_json else TextOutput(out, hide)


# -- in the event loop -------------------------------------------------------------------------------------------------


async def _turn(app: App, asked: _Asked, output: Output, interrupts: Interrupts) -> TurnFinished:
    """One turn of an agent, told while it runs."""
    agent = await _agent(app, asked)
    output.began(agent)
    turn = agent.run(asked.text)
    interrupts.first = lambda: _cancel(agent)
    async for event in turn:
        output.tell(event if asked.reveal else _masked(event, agent))
    interrupts.first = None
    end = turn.end
    assert end is not None  # noqa: S101 - it is the last thing that the turn tells
    _sum_up(agent, end, app.secrets.hide(_leading_to_log(app, asked)))
    if end.error is not None:
        raise end.error
    return end


def _masked(event: TurnEvent, agent: Agent) -> TurnEvent:
    """A call of a tool as it may be shown; the log, where it stands by now, says whether it is sensitive."""
    from foreword.agent.stream import ToolCallFinished, ToolCallStarted
    from foreword.session.events import ToolAnswered, ToolCalled
    from foreword.session.masking import masked_event

    if not isinstance(event, (ToolCallStarted, ToolCallFinished)):
        return event
    for logged in reversed(agent.session.events):
        told = masked_event(logged.event)
        if isinstance(told, ToolCalled) and told.call.id == event.call.id:
            return replace(event, call=told.call)
        if isinstance(told, ToolAnswered) and isinstance(event, ToolCallFinished) and _is_of(told, event):
            event = replace(event, message=told.message)
    return event


def _is_of(answered: ToolAnswered, event: ToolCallFinished) -> bool:
    return answered.message.call_id == event.message.call_id


def _cancel(agent: Agent) -> None:
    from foreword.cli.terminal import aside

    agent.cancel()
    aside("[cancelled; Ctrl-C again leaves at once, without waiting until that is logged]")


async def _agent(app: App, asked: _Asked) -> Agent:
    from foreword.cli.faults import Fault

    name = asked.agent
    if name is None:
        if len(app.agents) != 1:
            known = ", ".join(app.agents)
            what = f"it has several: {known}" if known else "it has none; agents stand in it under the key agents"
            raise Fault(f"say which agent of {app.deployment.name} is to answer, with --agent NAME; {what}")
        (name,) = app.agents
    entry = app.deployment.agents.get(name)
    if entry is not None and entry.model is None and asked.model is None:
        way_out = f"give one with --model, as in openai:gpt-5, or in the file as agents.{name}.model"
        raise Fault(f'agent "{name}" of {app.deployment.name} has no model; {way_out}')
    cwd = None if asked.session is not None else Path.cwd()
    return await app.agent(name, asked.session, model=asked.model, labels=asked.labels, cwd=cwd)


def _leading_to_log(app: App, asked: _Asked) -> str:
    """What a command that is typed here needs behind it to read what was logged."""
    from foreword.cli.logs import leading_to
    from foreword.compose.stores import store_of

    return leading_to(asked.store or store_of(app.deployment, app.secrets, os.environ))


def _sum_up(agent: Agent, end: TurnFinished, leading: str) -> None:
    """Say where it was logged, and what it cost.

    Args:
        agent: who ran.
        end: of the turn.
        leading: what a command needs behind it to find the log.
    """
    from foreword.cli.heading import count
    from foreword.cli.terminal import aside
    from foreword.cli.usage import Spent, tokens
    from foreword.session.events import RequestEnded, StepStart, ToolCalled

    events = [logged.event for logged in agent.session.events]
    spent = Spent()
    for event in events:
        if isinstance(event, RequestEnded):
            spent = spent.plus(event.usage)
    steps, calls = (sum(isinstance(event, kind) for event in events) for kind in (StepStart, ToolCalled))
    facts = [count(steps, "step"), *([count(calls, "tool call")] if calls else []), *tokens(spent)]
    aside(f"[{end.reason}: {', '.join(facts)}; foreword log show {agent.id}{leading}]")
