"""``foreword trust``: the list of deployment files that commands may run without being told their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from foreword.compose.trust import TrustStore

__all__ = ["trust"]


@click.command(short_help="Let commands run a deployment without being told its name.")
@click.argument("file", required=False)
@click.option("--list", "wants_list", is_flag=True, help="List the trusted files, and whether they still are.")
@click.option("--remove", is_flag=True, help="Trust FILE no more.")
@json_option
@traceback_option
def trust(*, file: str | None, wants_list: bool, remove: bool, as_json: bool) -> None:
    """Trust FILE as it stands now: its path and the digest of its content go into a list of your own.

    FILE is a deployment file (.yaml, .yml, .toml); without one it is foreword.yaml, .yml or .toml of the current
    folder. What it names is shown, and nothing of it is run. A trusted file runs where a command is given no file; once
    it has changed, it has to be trusted again.

    Its plugins are sought beside it first, so you trust the modules of its folder, too, also as they change.
    """
    from foreword.compose.trust import TrustStore

    if wants_list and (remove or file is not None):
        raise click.UsageError("--list is about all files; drop the rest")
    store = TrustStore()
    if wants_list:
        _tell_all(store, as_json=as_json)
    elif remove:
        _remove(file, store, as_json=as_json)
    else:
        _add(file, store, as_json=as_json)


def _tell_all(store: TrustStore, *, as_json: bool) -> None:
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows
    from foreword.cli.trust_list import list_document, list_rows

    if as_json:
        write_json(list_document(store))
    else:
        screen = Screen.of_stdout(fallback=UNBOUNDED)
        write_rows(list_rows(store, screen), screen)


def _add(typed: str | None, store: TrustStore, *, as_json: bool) -> None:
    """Show what a file names, then trust the very bytes that were shown."""
    from foreword.cli.deployments import EverythingSet, file_to_read
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows, write_text
    from foreword.cli.trust_list import named_document, named_rows
    from foreword.compose.files import read_file
    from foreword.compose.reading import Reading

    file = file_to_read(typed)
    content = read_file(file, str(file))
    deployment = Reading.of(file, content, EverythingSet()).checked()
    if as_json:
        write_json(named_document(deployment, store.trust(file, content)))
        return
    so_far = "trusted already" if store.trusts(file, content) else "changed since" if store.knows(file) else "new"
    screen = Screen.of_stdout(fallback=UNBOUNDED)
    write_rows(named_rows(deployment, so_far, screen), screen)
    entry = store.trust(file, content)
    write_text(f"trusted as it stands now, with the modules of its folder\nsha256 {entry.sha256}")


def _remove(typed: str | None, store: TrustStore, *, as_json: bool) -> None:
    from foreword.cli.deployments import file_to_read
    from foreword.cli.faults import Fault
    from foreword.cli.terminal import write_json, write_text

    file = file_to_read(typed)
    if not store.knows(file):
        raise Fault(f"{file} is not in the list of trusted files; see foreword trust --list")
    store.revoke(file)
    if as_json:
        write_json({"path": str(file.resolve()), "sha256": None})
    else:
        write_text(f"{file} is trusted no more")
