"""``foreword tokens``: what each part and each owner of a prompt costs in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option, whole

if TYPE_CHECKING:
    from foreword.explain.tokens import TokenReport

__all__ = ["tokens"]

_FINDINGS = 1


@click.command(short_help="Count the tokens of a prompt, by part and by owner.")
@click.argument("target", required=False)
@click.option("--agent", metavar="NAME", help="The prompt of this agent of the deployment.")
@click.option("--scope", metavar="NAME", help="The prompt of this scope; 'global' is that of no scope.")
@click.option(
    "--budget",
    type=whole("tokens", "--budget 4000"),
    metavar="N",
    help="Exit with 1 if the whole has more than N tokens.",
)
@click.option("--tokenizer", metavar="NAME", help="What to count with; else the one of the model, if it is known.")
@log_option
@json_option
@traceback_option
def tokens(
    *,
    target: str | None,
    agent: str | None,
    scope: str | None,
    budget: int | None,
    tokenizer: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Count the tokens of a prompt: each section, variable, context and tool, and what each owner costs.

    TARGET is a deployment file (.yaml, .yml, .toml), module:name or path/file.py:name of a SystemPrompt, or the address
    of a logged step, of which the history is counted, too. Without one it is the trusted deployment of this folder.

    Each text is tokenised once and whole; a token belongs to whoever owns its first byte, so the parts add up exactly.
    The value of a variable counts for the variable, not for the section it stands in. Tokenizers: o200k_base,
    cl100k_base and deepseek_v3 with the extra "tokens"; else there is an estimate, marked with "about".
    """
    from foreword.cli.explain_subject import Wanted, document, looked_at
    from foreword.cli.terminal import Screen, write_json, write_rows
    from foreword.cli.tokens_list import token_rows
    from foreword.explain.tokenizers import tokenizer_named
    from foreword.explain.tokens import tokens_of

    counter = None if tokenizer is None else tokenizer_named(tokenizer)
    with looked_at(Wanted(target, agent, scope, store)) as looked:
        report = tokens_of(looked.subject, counter)
        if as_json:
            write_json(document(_document(report, budget), looked.hide))
        else:
            screen = Screen.of_stdout(looked.hide.name)
            write_rows(token_rows(report, budget, screen), screen)
    return _FINDINGS if budget is not None and report.over(budget) else 0


def _document(report: TokenReport, budget: int | None) -> dict[str, object]:
    over = None if budget is None else report.over(budget)
    return {**report.to_json(), "budget": budget, "over_budget": over}
