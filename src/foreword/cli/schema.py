"""``foreword schema``: the JSON Schema of deployment files, so that an editor completes and checks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

import click

from foreword.cli.options import traceback_option

__all__ = ["PLACE", "modeline", "schema", "schema_text"]

PLACE: Final = ".foreword/schema.json"
"""Where editors are told to look, relative to the deployment file."""


@click.command(short_help="Print the JSON Schema of deployment files, for editors.")
@click.option(
    "--write", "path", metavar="[PATH]", is_flag=False, flag_value=PLACE,
    help=f"Write it to a file instead, {PLACE} if none is named.",
)  # fmt: skip
@click.option("--json", is_flag=True, expose_value=False, help="Changes nothing: a schema is JSON.")
@traceback_option
def schema(*, path: str | None) -> None:
    """Print the JSON Schema of deployment files.

    With --write it goes to a file. An editor that knows YAML then completes and checks deployment files that begin with
    the line

    # yaml-language-server: $schema=.foreword/schema.json
    """
    from foreword.cli.terminal import write_json, write_text
    from foreword.compose.schema import schema as made

    if path is None:
        write_json(made())
        return
    _write(Path(path))
    write_text(f"wrote {path}; the first line of a YAML file that is to use it:\n{modeline(path)}")


def modeline(path: str) -> str:
    """The line that tells an editor where the schema is."""
    return f"# yaml-language-server: $schema={Path(path).as_posix()}"


def schema_text() -> str:
    """The schema as it stands in a file."""
    from foreword.compose.schema import schema as made

    return json.dumps(made(), indent=2, ensure_ascii=False) + "\n"


def _write(file: Path) -> None:
    """Write the schema; over an older one, never over anything else."""
    from foreword.cli.faults import Fault

    try:
        if (file.exists() or file.is_symlink()) and not _is_schema(file):
            raise Fault(f"{file} is there, and is no schema of foreword; name another file, or take it away")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(schema_text(), encoding="utf-8")
    except OSError as error:
        raise Fault(f"{file} cannot be written: {error.strerror or error}") from error


def _is_schema(file: Path) -> bool:
    from foreword.compose.schema import schema as made

    if not file.is_file():
        return False
    try:
        held: Any = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(held, dict) and cast("dict[str, Any]", held).get("title") == made()["title"]
