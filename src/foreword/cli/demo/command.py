"""The command: play, prove, tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from foreword.cli.demo.proof import Proof
    from foreword.cli.demo.script import Played

__all__ = ["demo"]

_FINDINGS: Final = 1


@click.command(short_help="Play a session without key or network, and rebuild it from its log.")
@click.option("--log", "store", metavar="STORE", help="The store to log it in; without it sqlite:foreword.db, here.")
@json_option
@traceback_option
def demo(*, store: str | None, as_json: bool) -> int:
    """Play a session of a bookshop's support agent, log it, and prove the log.

    The model is a script, so it takes no key and no network. While the agent runs, a request fails and is sent again, a
    tool comes late, the model changes, a fact changes, a tool is masked, and the history is compacted. Then, with the
    agent and its plugins gone, every request is rebuilt from the log alone and compared with the bytes that the model
    got; the exit code is 1 if one differs.
    """
    from foreword.cli.folders import here
    from foreword.cli.terminal import Screen, write_json, write_rows
    from foreword.compose.stores import USUAL_STORE
    from foreword.prompt.asking import run_loop

    here()
    place = store or USUAL_STORE

    async def both() -> tuple[Played, Proof]:
        from foreword.cli.demo.proof import proven
        from foreword.cli.demo.script import played
        from foreword.session.log import open_log

        async with open_log(place) as log:
            play = await played(log)
            return play, await proven(log, play)

    play, proof = run_loop(both, may_hang=True)
    if as_json:
        write_json(_document(place, play, proof))
    else:
        from foreword.cli.demo.report import rows
        from foreword.cli.logs import leading_to

        screen = Screen.of_stdout()
        write_rows(rows(place, play, proof, screen, leading=leading_to(place)), screen)
    return 0 if proof.equal == proof.requests == len(play.sent) and proof.report.intact else _FINDINGS


def _document(store: str, play: Played, proof: Proof) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "store": store,
        "session": play.session,
        "steps": [asdict(step) for step in proof.steps],
        "requests": proof.requests,
        "sent": len(play.sent),
        "equal": proof.equal,
        "bytes": proof.size,
        "events": proof.report.events,
        "intact": proof.report.intact,
        "head": proof.report.head,
    }
