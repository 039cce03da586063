"""``foreword cache``: what of each request a provider could reuse, and who broke the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, reveal_option, traceback_option, whole

if TYPE_CHECKING:
    from foreword.cli.hiding import Hiding
    from foreword.explain.cache import CacheStep
    from foreword.explain.cache_session import SessionCache
    from foreword.explain.profiles import CacheProfile
    from foreword.explain.tokenizers import Tokenizer

__all__ = ["cache"]


@click.command(short_help="Say what of each request a provider could reuse, and who broke the rest.")
@click.argument("target")
@click.argument("new", required=False)
@click.option("--agent", "agents", metavar="NAME", multiple=True, help="Of deployments this agent; twice: of both.")
@click.option("--profile", metavar="PROVIDER", help="Whose rules to apply; else those of the request's provider.")
@click.option("--tokenizer", metavar="NAME", help="What to count with; else the one of the model, if it is known.")
@click.option(
    "--lifetime",
    type=whole("seconds", "--lifetime 3600"),
    metavar="SECONDS",
    help="After how long the provider forgets.",
)
@click.option("--steps", is_flag=True, help="Of a session, all of its requests, not only those that lost something.")
@log_option
@json_option
@reveal_option
@traceback_option
def cache(
    *,
    target: str,
    new: str | None,
    agents: tuple[str, ...],
    profile: str | None,
    tokenizer: str | None,
    lifetime: int | None,
    steps: bool,
    store: str | None,
    as_json: bool,
    reveal: bool,
) -> None:
    """Say what of each request a provider could reuse, what broke the rest, whose it was, and what that cost.

    TARGET is a session: step by step its requests, each held against the one before, and the owners ranked by what they
    lost. With @STEP it is that request alone. With NEW the two are held against each other: addresses of logged steps,
    deployment files (.yaml, .yml, .toml), or module:name of SystemPrompts.

    How a provider caches is data, with a source and a date for each number; see docs/how-to/explain.md. Of a provider
    that is not known, bytes and owners are told, and no money. "expected" is what its rules lead to, "reported" what it
    said itself.
    """
    from foreword.cli.explain_pair import two
    from foreword.cli.typed import is_address
    from foreword.explain.cache import compare
    from foreword.explain.profiles import profile_named
    from foreword.explain.tokenizers import tokenizer_named

    rules = None if profile is None else profile_named(profile)
    counter = None if tokenizer is None else tokenizer_named(tokenizer)
    if new is None and len(set(agents)) < 2 and not is_address(target):
        raise click.UsageError("name a second prompt to hold it against; or give a session of the log")
    if new is None and is_address(target) and not {"@", "/"} & set(target):
        session = _session(target, rules, counter, lifetime, store, reveal=reveal)
        _tell_session(session, all_steps=steps, as_json=as_json)
        return
    with two(target, new, agents, (), store) as (before, after):
        told = compare(
            before.subject, after.subject, profile=rules, tokenizer=counter, lifetime=lifetime, masked=not reveal
        )
        _tell_step(told, (before.hide, after.hide), as_json=as_json)


def _session(
    session: str,
    rules: CacheProfile | None,
    counter: Tokenizer | None,
    lifetime: int | None,
    store: str | None,
    *,
    reveal: bool,
) -> SessionCache:
    from foreword.cli.logs import asked
    from foreword.explain.cache_session import session_cache

    return asked(
        store,
        lambda opened: session_cache(
            opened, session, profile=rules, tokenizer=counter, lifetime=lifetime, masked=not reveal
        ),
    )


def _tell_session(told: SessionCache, *, all_steps: bool, as_json: bool) -> None:
    from foreword.cli.cache_list import session_rows
    from foreword.cli.terminal import Screen, write_json, write_rows

    if as_json:
        write_json(told.to_json())
    else:
        screen = Screen.of_stdout()
        write_rows(session_rows(told, screen, all_steps=all_steps), screen)


def _tell_step(told: CacheStep, hidings: tuple[Hiding, Hiding], *, as_json: bool) -> None:
    from foreword.cli.cache_list import step_rows
    from foreword.cli.explain_subject import document
    from foreword.cli.terminal import Screen, write_json, write_rows

    old, new = hidings
    if as_json:
        write_json(document(document(told.to_json(), old), new))
    else:
        screen = Screen.of_stdout(lambda text: new.name(old.name(text)))
        write_rows(step_rows(told, screen), screen)
