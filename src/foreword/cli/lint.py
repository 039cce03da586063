"""``foreword lint``: what is wrong with a prompt, or will be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.cli.hiding import Hiding
    from foreword.cli.lint_target import Asked
    from foreword.compose.deployment import Deployment
    from foreword.explain.lint.config import LintConfig
    from foreword.explain.lint.engine import Report

__all__ = ["lint"]

_FINDINGS = 1
_TYPED = "on the command line"


@click.command(short_help="Say what is wrong with a prompt, or will be.")
@click.argument("target", required=False)
@click.option("--agent", metavar="NAME", help="Look at the prompt of this agent alone.")
@click.option("--select", metavar="CODES", multiple=True, help="Only these rules: FW104, or FW3 for all of a group.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Not these; CODE:NAME for one entry alone.")
@click.option("--deep", is_flag=True, help="Also let fresh processes make the prompt, and compare its bytes.")
@click.option("--list", "list_rules", is_flag=True, help="List the rules, and look at nothing.")
@click.option("--markdown", is_flag=True, help="With --list: the page that the documents have.")
@log_option
@json_option
@traceback_option
def lint(
    *,
    target: str | None,
    agent: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    deep: bool,
    list_rules: bool,
    markdown: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Say what is wrong with the prompt of TARGET, or will be.

    That is: text that breaks the cache, references to nothing, guidance for tools that are gone, characters that nobody
    sees, secrets, and more.

    TARGET is a deployment file (.yaml, .yml, .toml); without one it is foreword.yaml, .yml or .toml of the current
    folder, if you trust it (see foreword trust). Or it is module:name or path/file.py:name of a SystemPrompt, or of a
    function, plain or async, that returns one.

    Its plugins are loaded, and its prompt is assembled three times for each scope, the last time under another clock.

    Or it is the address of a logged step (SESSION, SESSION@STEP, last is the newest session), of which only texts and
    tools can be looked at. Sessions are in the store of --log, else FOREWORD_LOG, else that of the trusted deployment
    here, else sqlite:foreword.db.

    What is known and meant is ignored, with a reason, in the deployment: lint: {ignore: {FW104: "…"}}. With findings
    the exit code is 1.
    """
    from foreword.cli.typed import is_address

    if list_rules:
        if target is not None or agent is not None or deep:
            raise click.UsageError("--list looks at nothing; give no target, and of options only --json or --markdown")
        return _tell_rules(as_json=as_json, markdown=markdown)
    if markdown:
        raise click.UsageError("--markdown goes with --list")
    chosen = _Chosen(_codes(select), _codes(ignore))
    chosen.on_top_of(None)  # a misspelt code is told before anything runs
    if target is not None and is_address(target):
        if agent is not None or deep:
            raise click.UsageError(f'--agent and --deep are for prompts, and "{target}" is the address of a step')
        return _look_at_step(target, store, chosen, as_json=as_json)
    return _look(target, agent, chosen, deep=deep, as_json=as_json)


def _codes(given: Iterable[str]) -> tuple[str, ...]:
    """Codes, also those that stand behind one another: ``--select FW1,FW3``."""
    return tuple(code.strip() for each in given for code in each.split(",") if code.strip())


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The codes on the command line."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]

    def on_top_of(self, deployment: Deployment | None) -> LintConfig:
        """What the deployment says, and the command line on top of it."""
        from foreword.cli.faults import Fault
        from foreword.errors import InvalidConfigError
        from foreword.explain.lint.config import SECTION_TOKENS, LintConfig
        from foreword.explain.lint.rules import RULES

        held = None if deployment is None else deployment.lint
        config = LintConfig(
            self.select or (() if held is None else held.select),
            {**({} if held is None else held.ignore), **dict.fromkeys(self.ignore, _TYPED)},
            SECTION_TOKENS if held is None or held.section_tokens is None else held.section_tokens,
        )
        try:
            config.check(RULES)
        except InvalidConfigError as error:
            where = "" if deployment is None else f"{deployment.name}: "
            told = "; ".join(f"lint.{fault.field}: {fault.message}" for fault in error.faults)
            raise Fault(f"{where}{told}; foreword lint --list lists the rules") from error
        return config


def _look(typed: str | None, agent: str | None, chosen: _Chosen, *, deep: bool, as_json: bool) -> int:
    from foreword.cli.lint_deep import runs_of
    from foreword.cli.lint_target import Target, asking
    from foreword.explain.lint.engine import aexamine

    target = Target(typed, agent)
    runs = runs_of(target) if deep else ()

    async def ask(asked: Asked) -> Report:
        config = chosen.on_top_of(asked.deployment)
        return await aexamine(asked.prompt, config, agents=asked.agents, runs=runs, hide=asked.hide)

    with asking(target, "linting", ask) as answer:
        return _tell(answer.name, answer.value, answer.hide, as_json=as_json)


def _look_at_step(address: str, store: str | None, chosen: _Chosen, *, as_json: bool) -> int:
    from foreword.cli.explain_subject import Wanted, looked_at
    from foreword.explain.lint.engine import examine

    with looked_at(Wanted(address, log=store)) as looked:
        return _tell(address, examine(looked.shown, chosen.on_top_of(None)), looked.hide, as_json=as_json)


def _tell(name: str, report: Report, hide: Hiding, *, as_json: bool) -> int:
    from foreword.cli.lint_list import report_document, report_rows, tell_limits
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows

    if as_json:
        write_json(report_document(name, report, hide))
    else:
        screen = Screen.of_stdout(hide.name, fallback=UNBOUNDED)
        write_rows(report_rows(name, report, screen), screen)
    tell_limits(report, hide)
    return _FINDINGS if report.findings else 0


def _tell_rules(*, as_json: bool, markdown: bool) -> int:
    from foreword.cli.lint_list import rules_document, rules_page, rules_rows
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows, write_text

    if as_json:
        write_json(rules_document())
    elif markdown:
        write_text(rules_page())
    else:
        screen = Screen.of_stdout(fallback=UNBOUNDED)
        write_rows(rules_rows(screen), screen)
    return 0
