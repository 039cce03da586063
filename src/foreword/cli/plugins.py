"""``foreword plugins``: what the plugins of a deployment contribute, or which plugins are installed."""

from __future__ import annotations

import click

from foreword.cli.options import json_option, traceback_option

__all__ = ["plugins"]


@click.command(short_help="List plugins, and what each of them contributes.")
@click.argument("file", required=False)
@click.option("--installed", is_flag=True, help="Those that installed packages offer, whatever file is here.")
@json_option
@traceback_option
def plugins(*, file: str | None, installed: bool, as_json: bool) -> None:
    """List the plugins of a deployment, and what each of them contributes.

    FILE is a deployment file (.yaml, .yml, .toml); without one it is foreword.yaml, .yml or .toml of the current
    folder, if you trust it (see foreword trust). Its plugins are loaded, to tell what they contribute.

    Where there is no such file, or with --installed, the plugins that installed packages offer are listed; none of
    their code is loaded for that.
    """
    if installed and file is not None:
        raise click.UsageError("--installed is about no file; drop one of the two")
    if installed or (file is None and not _is_one_here()):
        _tell_installed(as_json=as_json)
    else:
        _tell_deployment(file, as_json=as_json)


def _is_one_here() -> bool:
    from foreword.cli.deployments import file_to_read
    from foreword.errors import DeploymentError

    try:
        file_to_read(None)
    except DeploymentError:
        return False
    return True


def _tell_installed(*, as_json: bool) -> None:
    from foreword.cli.installed_list import installed_document, installed_rows
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows
    from foreword.compose.discovery import discover

    found = discover()
    if as_json:
        write_json(installed_document(found))
    else:
        screen = Screen.of_stdout(fallback=UNBOUNDED)
        write_rows(installed_rows(found, screen), screen)


def _tell_deployment(file: str | None, *, as_json: bool) -> None:
    from foreword.cli.deployments import answer_of
    from foreword.cli.plugin_list import contributors, plugin_document, plugin_rows
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows

    with answer_of(file, "loading the plugins of", contributors) as answer:
        if as_json:
            write_json(plugin_document(answer.file, answer.value, answer.hide))
        else:
            screen = Screen.of_stdout(answer.hide.name, fallback=UNBOUNDED)
            write_rows(plugin_rows(answer.file, answer.value, screen), screen)
