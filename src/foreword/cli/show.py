"""``foreword show``: print a prompt, and who put what there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from foreword.cli.options import traceback_option

if TYPE_CHECKING:
    from foreword.cli.report import Part

__all__ = ["show"]


@click.command(short_help="Print a prompt, and who put what there.")
@click.argument("target")
@click.option("--annotate", is_flag=True, help="The prompt with a gutter: owner, section, scope, characters.")
@click.option("--contexts", is_flag=True, help="The runtime-context snapshot; with --annotate, behind the prompt.")
@click.option("--tools", is_flag=True, help="The tools: owner, name, description, parameters, characters.")
@click.option("--trace", is_flag=True, help="What each stage of the assembly did: what was left out, and why.")
@click.option("--scope", metavar="NAME", help="The prompt of this scope; 'global' is that of no scope.")
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON document, whatever else is asked for.")
@traceback_option
def show(
    *, target: str, annotate: bool, contexts: bool, tools: bool, trace: bool, scope: str | None, as_json: bool
) -> None:
    """Print the prompt of TARGET: to a pipe or a file, its exact text and a newline.

    TARGET is module:name or path/file.py:name of a SystemPrompt, or of a function, plain or async, that returns one.
    Imports find what stands in the current folder, and in the file's own.

    In the gutter a solid bar begins a line and a broken one goes on with it; the bar is heavy where a row is the value
    of a variable. Blank lines without a bar are the assembler's.
    """
    from foreword.cli.targets import rendered
    from foreword.cli.terminal import Screen, write_json, write_rows, write_text

    with rendered(target, scope) as shown:
        if as_json:
            from foreword.cli.as_json import as_json as document

            write_json(document(shown))
        elif annotate or tools or trace:
            from foreword.cli.report import report

            asked: dict[Part, bool] = {"prompt": annotate, "contexts": contexts, "tools": tools, "trace": trace}
            screen = Screen.of_stdout()
            write_rows(report(shown, [part for part, wanted in asked.items() if wanted], screen), screen)
        else:
            write_text(shown.rendering.snapshot if contexts else shown.rendering.text)
