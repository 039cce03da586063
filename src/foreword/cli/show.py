"""``foreword show``: print a prompt, and who put what there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import reveal_option, traceback_option

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from foreword.cli.report import Part
    from foreword.cli.shown import Shown

__all__ = ["show"]


@click.command(short_help="Print a prompt, and who put what there.")
@click.argument("target", required=False)
@click.option("--agent", metavar="NAME", help="The prompt of this agent of the deployment.")
@click.option("--annotate", is_flag=True, help="The prompt with a gutter: owner, section, scope, characters.")
@click.option("--contexts", is_flag=True, help="The runtime-context snapshot; with --annotate, behind the prompt.")
@click.option("--tools", is_flag=True, help="The tools: owner, name, description, parameters, characters.")
@click.option("--trace", is_flag=True, help="What each stage of the assembly did: what was left out, and why.")
@click.option("--scope", metavar="NAME", help="The prompt of this scope; 'global' is that of no scope.")
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON document, whatever else is asked for.")
@log_option
@reveal_option
@traceback_option
def show(
    *,
    target: str | None,
    agent: str | None,
    annotate: bool,
    contexts: bool,
    tools: bool,
    trace: bool,
    scope: str | None,
    as_json: bool,
    store: str | None,
    reveal: bool,
) -> None:
    """Print the prompt of TARGET: to a pipe or a file, its exact text and a newline.

    TARGET is a deployment file (.yaml, .yml, .toml). Without one it is foreword.yaml, .yml or .toml of the current
    folder, if you trust it (see foreword trust).

    Or it is module:name or path/file.py:name of a SystemPrompt, or of a function, plain or async, that returns one.
    Imports find what stands in the current folder, and in the file's own.

    Or it is the address of a logged step: SESSION, SESSION@N, SESSION@TURN.STEP, with /ATTEMPT; last is the newest.

    In the gutter a solid bar begins a line and a broken one goes on with it; the bar is heavy where a row is the value
    of a variable. Blank lines without a bar are the assembler's.
    """
    from foreword.cli.logs import warn_of_masks
    from foreword.cli.terminal import Screen, write_json, write_rows, write_text

    with _rendered(target, agent, scope, store) as told:
        shown = replace(told, reveal=reveal)
        if as_json:
            from foreword.cli.as_json import as_json as document

            write_json(document(shown))
        elif annotate or tools or trace:
            from foreword.cli.report import report
            from foreword.cli.unstored_list import unstored_rows

            asked: dict[Part, bool] = {"prompt": annotate, "contexts": contexts, "tools": tools, "trace": trace}
            screen = Screen.of_stdout(shown.hide.name)
            write_rows(report(shown, [part for part, wanted in asked.items() if wanted], screen), screen)
            write_rows(unstored_rows(screen, shown.unstored), screen)
        else:
            spans = shown.snapshot_spans if contexts else shown.spans
            if spans.text != (shown.rendering.snapshot if contexts else shown.rendering.text):
                warn_of_masks()
            write_text(spans.text)


def _rendered(
    target: str | None, agent: str | None, scope: str | None, store: str | None
) -> AbstractContextManager[Shown]:
    from foreword.cli.explain_subject import refuse_names
    from foreword.cli.typed import is_address, is_deployment

    if target is not None and is_address(target):
        refuse_names(target, agent, scope)
        from foreword.cli.show_log import logged

        return logged(target, store)
    if target is None or is_deployment(target):
        if agent is not None and scope is not None:
            raise click.UsageError("--agent and --scope both say whose prompt it is; give one of them")
        from foreword.cli.agents import rendered as rendered_deployment

        return rendered_deployment(target, agent, scope)
    if agent is not None:
        raise click.UsageError(f'--agent is for deployment files, and "{target}" is none; --scope NAME chooses a scope')
    from foreword.cli.targets import rendered

    return rendered(target, scope)
