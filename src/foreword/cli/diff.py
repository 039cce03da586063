"""``foreword diff``: what differs between two prompts, whose it is, and what it does to the provider's cache."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, reveal_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from foreword.cli.diff_agents import AgentDiff, Agents
    from foreword.cli.explain_subject import Looked

__all__ = ["diff"]

_FINDINGS = 1


@click.command(short_help="Say what differs between two prompts, and whose it is.")
@click.argument("old")
@click.argument("new", required=False)
@click.option("--against", metavar="REV", help="Hold OLD as it is now against how it was at this revision of git.")
@click.option(
    "--agent",
    "agents",
    metavar="NAME",
    multiple=True,
    help="Of deployments this agent; twice: of OLD and NEW; '*': each.",
)
@click.option("--scope", "scopes", metavar="NAME", multiple=True, help="The same for scopes.")
@click.option("--full", is_flag=True, help="Whole texts of what came and went, and all around what changed.")
@click.option("--check", is_flag=True, help="Exit with 1 if anything differs.")
@click.option("--github", is_flag=True, help="As Markdown, for the comment of a pull request.")
@log_option
@json_option
@reveal_option
@traceback_option
def diff(
    *,
    old: str,
    new: str | None,
    against: str | None,
    agents: tuple[str, ...],
    scopes: tuple[str, ...],
    full: bool,
    check: bool,
    github: bool,
    store: str | None,
    as_json: bool,
    reveal: bool,
) -> int:
    """Say what differs between two prompts: tools, sections, variables, contexts, model, history; each with its owner.

    OLD and NEW are addresses of logged steps, deployment files (.yaml, .yml, .toml), or module:name of SystemPrompts,
    in any combination. With one address alone its step is held against the one before. With one deployment and --agent
    twice, two of its agents are. With --agent '*' each agent is held against itself, in NEW or at REV.

    With --against REV the deployment file (or path/file.py:name) is held against itself at that revision, which is
    checked out into a temporary folder and rendered in a fresh process. That runs the code of REV.

    A section that stands elsewhere is moved, not removed and added. At the end stands how much of the beginning a
    provider could reuse, and what broke the rest.
    """
    from foreword.cli.diff_agents import ALL, agents_of

    if github and as_json:
        raise click.UsageError("--github and --json are two forms of the same; drop one of the two")
    form = _Form("json" if as_json else "github" if github else "text", full, reveal)
    if ALL not in agents:
        with _pair_of(old, new, against, agents, scopes, store) as pair:
            told = form.compared(*pair)
            form.tell(told, *pair)
        return _FINDINGS if check and not told.diff.is_empty else 0
    if agents != (ALL,) or scopes:
        raise click.UsageError("--agent '*' means all agents; give no other, and no scope")
    both = agents_of(old, new, against)
    every: list[AgentDiff] = []
    documents: dict[str, Any] = {}
    for name in both.both:
        with _pair_of(old, new, against, (name,), (), store) as pair:
            every.append(form.compared(*pair, agent=name))
            documents[name] = form.tell(every[-1], *pair, is_one_of_many=True)
    form.sum_up(both, every, documents)
    differs = both.gone or both.came or not all(each.diff.is_empty for each in every)
    return _FINDINGS if check and differs else 0


@dataclass(frozen=True, slots=True)
class _Form:
    """How diffs are told."""

    name: Literal["text", "json", "github"]
    full: bool
    reveal: bool

    def compared(self, before: Looked, after: Looked, agent: str = "") -> AgentDiff:
        """What differs, and what it means."""
        from foreword.cli.diff_agents import AgentDiff
        from foreword.explain.cache import compare
        from foreword.explain.diff import diff_of
        from foreword.explain.tokens import tokens_of

        old, new = before.subject, after.subject
        effect = compare(old, new, masked=not self.reveal)
        totals = tokens_of(old).total, tokens_of(new).total
        return AgentDiff(agent, diff_of(old, new, masked=not self.reveal), effect, totals)

    def tell(self, told: AgentDiff, before: Looked, after: Looked, *, is_one_of_many: bool = False) -> Any:
        """Print a diff; of many, JSON is given back instead."""
        from foreword.cli.diff_list import diff_document, diff_rows
        from foreword.cli.diff_markdown import diff_markdown
        from foreword.cli.explain_subject import document
        from foreword.cli.terminal import Screen, write_json, write_rows, write_text

        if self.name == "json":
            tokens = {"old_tokens": told.tokens[0], "new_tokens": told.tokens[1]}
            whole = {**diff_document(told.diff, told.effect), **tokens}
            whole = document(document(whole, before.hide), after.hide)
            return whole if is_one_of_many else write_json(whole)
        if self.name == "github":
            write_text(diff_markdown(told.diff, told.effect, told.tokens) + ("\n" if is_one_of_many else ""))
        else:
            screen = Screen.of_stdout(lambda text: after.hide.name(before.hide.name(text)))
            write_rows(diff_rows(told.diff, told.effect, screen, full=self.full), screen)
            write_rows([()] if is_one_of_many else [], screen)
        return None

    def sum_up(self, agents: Agents, told: Sequence[AgentDiff], documents: Mapping[str, Any]) -> None:
        """Print what there is to say of all agents."""
        from foreword.cli.diff_agents import agents_rows
        from foreword.cli.diff_markdown import agents_markdown
        from foreword.cli.terminal import Screen, write_json, write_rows, write_text

        if self.name == "json":
            write_json({"agents": documents, **agents.to_json()})
        elif self.name == "github":
            write_text(agents_markdown(agents.gone, agents.came, len(told)))
        else:
            screen = Screen.of_stdout()
            write_rows(agents_rows(agents, told, screen), screen)


@contextmanager
def _pair_of(
    old: str,
    new: str | None,
    against: str | None,
    agents: tuple[str, ...],
    scopes: tuple[str, ...],
    store: str | None,
) -> Generator[tuple[Looked, Looked]]:
    from foreword.cli.diff_against import at_revision
    from foreword.cli.explain_pair import two
    from foreword.cli.explain_subject import Wanted, looked_at
    from foreword.cli.typed import is_address

    if against is None:
        with two(old, new, agents, scopes, store) as pair:
            yield pair
        return
    if new is not None or is_address(old) or len(agents) > 1 or len(scopes) > 1:
        raise click.UsageError("with --against give one deployment file or path/file.py:name, and --agent once at most")
    wanted = Wanted(old, next(iter(agents), None), next(iter(scopes), None))
    with at_revision(against, wanted) as before, looked_at(wanted) as after:
        yield before, after
