"""``foreword log rebuild``: what a model got, from the log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from foreword.cli.logs import log_option
from foreword.cli.options import reveal_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.terminal import Row, Screen
    from foreword.session.finding import Location
    from foreword.session.log import Log
    from foreword.session.rebuild import BodyMaker, Rebuilt
    from foreword.wire.messages import Message
    from foreword.wire.request import ModelRequest

__all__ = ["rebuild"]

_SCRIPTED: Final = "scripted"


@click.command(short_help="Print what a model got, byte for byte.")
@click.argument("address", default="last", required=False)
@click.option("--text", "as_text", is_flag=True, help="For reading: system text, tools, messages, settings.")
@click.option("--body", is_flag=True, help="The body as it was sent to the provider, in the provider's own format.")
@click.option("--json", "as_json", is_flag=True, help="The request in a document with its address and its outcome.")
@click.option("--mark", is_flag=True, help="Placeholders in the place of what was erased, or not stored.")
@log_option
@reveal_option
@traceback_option
def rebuild(
    *, address: str, as_text: bool, body: bool, as_json: bool, mark: bool, store: str | None, reveal: bool
) -> None:
    """Print the request of an ADDRESS as the model got it: canonical JSON of system, tools, messages and config.

    Without a step it is the newest one's, without an attempt the last. It is made from the log alone, and checked
    against the digests that were logged before it was sent; behind the last byte comes a newline. What was registered
    as sensitive is masked, which stderr says; with --reveal it is to the byte what the model got.
    """
    from foreword.cli.faults import Fault
    from foreword.cli.logs import asked, warn_of_masks
    from foreword.cli.terminal import Screen, write_json, write_rows, write_text

    if as_text + body + as_json > 1:
        raise click.UsageError("--text, --body and --json are three ways to print it; give one of them")
    if body and mark:
        raise click.UsageError("--mark goes with every other way to print it; a body is made of a whole request")

    async def ask(log: Log) -> Rebuilt:
        return await _rebuilt(log, address, with_body=body, mark=mark)

    rebuilt = asked(store, ask)
    request = rebuilt.request if reveal else rebuilt.shown
    if body and request != rebuilt.request:
        raise Fault(f"the body of {rebuilt.location} holds what is sensitive, which --reveal prints as well")
    if as_text:
        screen = Screen.of_stdout()
        write_rows(_rows(rebuilt.location, request, screen), screen)
    elif as_json:
        write_json(_document(rebuilt, request))
    else:
        if request != rebuilt.request:
            warn_of_masks()
        write_text(((rebuilt.body if body else None) or request.canonical()).decode())
    if rebuilt.level is not None and not as_json:  # beside the bytes, which stay what they are
        click.echo(f"{rebuilt.location} was recorded, level {rebuilt.level}", err=True)


async def _rebuilt(log: Log, address: str, *, with_body: bool, mark: bool) -> Rebuilt:
    from foreword.session.rebuild import rebuild

    rebuilt = await rebuild(log, address, if_erased="mark" if mark else "raise")
    if not with_body:
        return rebuilt
    if rebuilt.level is not None:
        from foreword.integrations.rebuilding import rebuild_recorded

        return await rebuild_recorded(log, str(rebuilt.location))
    return await rebuild(log, str(rebuilt.location), adapter=_adapter(rebuilt))


def _adapter(rebuilt: Rebuilt) -> BodyMaker:
    """What makes the body of a request again."""
    from foreword.agent.models.shipped import SHIPPED, shipped_adapter
    from foreword.cli.faults import Fault

    recorded = rebuilt.attempted.body
    name = "" if recorded is None else recorded.adapter
    if name in SHIPPED:
        return shipped_adapter(name, api_key="unused")
    if name == _SCRIPTED:
        from foreword.testing.scripted_model import ScriptedModel

        return ScriptedModel(name=name)
    known = ", ".join((*SHIPPED, _SCRIPTED))
    what = f"was made by the adapter {name}, and this command knows {known}" if name else "was not recorded"
    raise Fault(f"the body of {rebuilt.location} {what}; in Python, rebuild(log, address, adapter=…) takes any adapter")


def _document(rebuilt: Rebuilt, request: ModelRequest) -> dict[str, Any]:
    from foreword.cli.log_events import outcome_document

    location = rebuilt.location
    return {
        "address": str(location),
        "session": location.session,
        "step": location.number,
        "turn": location.turn,
        "step_in_turn": location.step,
        "attempt": location.attempt,
        "attempts": location.attempts,
        "event": location.seq,
        "level": rebuilt.level,
        "perhaps_sent": rebuilt.perhaps_sent,
        "outcome": None if rebuilt.outcome is None else outcome_document(rebuilt.outcome),
        "erased": list(rebuilt.erased),
        "request": request.to_json(),
    }


# -- for reading -------------------------------------------------------------------------------------------------------


def _rows(location: Location, request: ModelRequest, screen: Screen) -> Iterator[Row]:
    from foreword.cli.heading import count, heading
    from foreword.cli.tool_list import summary
    from foreword.wire.request import canonical_json

    settings = canonical_json(request.to_json()["config"]["settings"]).decode()
    yield from heading(str(location), f"{request.config}, settings {settings}", screen)
    yield ()
    yield from heading("System", count(len(request.system), "character"), screen)
    yield from _text(request.system, screen)
    yield ()
    yield from heading("Tools", f"{len(request.tools):,}", screen)
    for tool in request.tools:
        yield from _text(f"{tool.name}{summary(tool.parameters)}", screen, "bold")
        yield from _text(tool.description, screen)
    yield ()
    yield from heading("Messages", f"{len(request.messages):,}", screen)
    for message in request.messages:
        role, texts = _message(message)
        yield from _text(role, screen, "bold")
        for text in texts:
            yield from _text(text, screen)


def _message(message: Message) -> tuple[str, list[str]]:
    told: dict[str, Any] = message.to_json()
    calls = [f"{call['name']} {call['arguments']}" for call in told.get("tool_calls", ())]
    name = f" {told['name']}" if "name" in told else ""
    failed = ", an error" if told.get("is_error") else ""
    return f"{told['role']}{name}{failed}", [*([told["content"]] if told["content"] else []), *calls]


def _text(text: str, screen: Screen, style: str = "") -> Iterator[Row]:
    from foreword.cli.terminal import Piece
    from foreword.cli.wrapping import wrapped

    for line in text.split("\n") if text else ():
        for row in wrapped(screen.shown(line).replace("\t", "    "), max(screen.width - 2, 2)):
            yield (Piece("  "), Piece(row, style))
