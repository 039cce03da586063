"""``foreword init``: write a deployment that works, to begin with."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from foreword.cli.faults import Fault
from foreword.cli.options import json_option, traceback_option
from foreword.cli.schema import PLACE, schema_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from foreword.cli.terminal import Row, Screen

__all__ = ["init"]

DEPLOYMENT: Final = "foreword.yaml"
_NARROWEST: Final = 24  # cells; with less beside a name, what is said about it goes below

_TEMPLATES: Final = {
    DEPLOYMENT: "the deployment: which plugins contribute, and what it says itself",
    "persona.md": "who the agent is",
    "refunds.py": "a plugin, with a section, a tool and its guidance",
}
_SCHEMA: Final = "lets an editor complete and check foreword.yaml"
_NEXT: Final = {
    "foreword show": "print the prompt",
    "foreword show --annotate --tools": "with who put what there",
    "foreword show --agent trainee": "the prompt of an agent",
    "foreword plugins": "what each plugin contributes",
    "foreword config": "every value, and where it came from",
    "foreword trust": "after each change of foreword.yaml, to trust it again",
}


@click.command(short_help="Write a deployment that works, to begin with.")
@click.argument("folder", required=False, default=".")
@json_option
@traceback_option
def init(*, folder: str, as_json: bool) -> None:
    """Write a deployment that works into FOLDER, which is made if need be; without one, into the current folder.

    It consists of foreword.yaml, a persona, a plugin, and a JSON Schema for editors. The file is put into your list of
    trusted files, so that foreword show prints its prompt at once. Where one of the files is there already, or another
    deployment file, nothing is written.
    """
    from foreword.cli.folders import here
    from foreword.cli.terminal import Screen, write_json, write_rows

    here()
    home = Path(folder)
    _refuse_to_overwrite(home)
    trusted = _write(home)
    if as_json:
        write_json({"folder": str(home.absolute()), "written": list(_texts()), "trusted": trusted})
    else:
        screen = Screen.of_stdout()
        write_rows(_report(home, screen), screen)


# -- writing -----------------------------------------------------------------------------------------------------------


def _texts() -> dict[str, str]:
    """The text of each file, by its place in the folder."""
    from importlib.resources import files

    templates = files("foreword.cli") / "templates"
    return {name: (templates / name).read_text(encoding="utf-8") for name in _TEMPLATES} | {PLACE: schema_text()}


def _refuse_to_overwrite(home: Path) -> None:
    from foreword.compose.files import NAMES

    in_the_way = dict.fromkeys([*NAMES, *_TEMPLATES, PLACE, "refunds/__init__.py"])
    there = [name for name in in_the_way if os.path.lexists(home / name)]
    if there:
        what = f"{home.absolute()} already holds {', '.join(there)}, so nothing was written"
        raise Fault(f"{what}; name another folder: foreword init FOLDER")


def _write(home: Path) -> str:
    """Write all files, or none; and trust the deployment.

    Returns:
        The deployment as the list of trusted files calls it.
    """
    from foreword.compose.trust import TrustStore

    store = TrustStore()
    with _undone_on_failure() as made:
        for name, text in _texts().items():
            file = home / name
            _make_folder(file.parent, made)
            try:
                with file.open("x", encoding="utf-8", newline="\n") as stream:
                    made.append(file)
                    stream.write(text)
            except OSError as error:
                raise Fault(f"{file} cannot be written: {error.strerror or error}") from error
        return store.trust(home / DEPLOYMENT).path


def _make_folder(folder: Path, made: list[Path]) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent, made)
    try:
        folder.mkdir()
    except OSError as error:
        raise Fault(f"the folder {folder} cannot be made: {error.strerror or error}") from error
    made.append(folder)


@contextmanager
def _undone_on_failure() -> Generator[list[Path]]:
    """A list of what is made, which is taken away again where something fails."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):  # the failure itself is what is to be told
                path.rmdir() if path.is_dir() else path.unlink()
        raise


# -- telling -----------------------------------------------------------------------------------------------------------


def _report(home: Path, screen: Screen) -> Iterator[Row]:
    import shlex

    from foreword.cli.heading import heading

    is_here = home.absolute() == Path.cwd()
    yield from heading("Wrote", f"into {home.absolute()}", screen)
    yield ()
    yield from _pairs({**_TEMPLATES, PLACE: _SCHEMA}, screen)
    yield ()
    yield from heading("Next", "foreword.yaml is trusted as it stands", screen)
    yield ()
    change = {} if is_here else {f"cd {shlex.quote(str(home))}": "commands look in the current folder"}
    yield from _pairs({**change, **_NEXT}, screen)


def _pairs(told: Mapping[str, str], screen: Screen) -> Iterator[Row]:
    """Names with what is to be said about them: beside them where there is room, else below."""
    from foreword.cli.terminal import Piece
    from foreword.cli.wrapping import cell_len, padded, wrapped

    names = {screen.name(name): text for name, text in told.items()}
    indent = max(map(cell_len, names)) + 4
    is_beside = screen.width - indent >= _NARROWEST
    for name, text in names.items():
        first = padded(f"  {name}", indent)
        if not is_beside:
            yield (Piece(f"  {name}", "bold"),)
            first, indent = " " * 4, 4
        for row in wrapped(text, screen.width - indent):
            yield (Piece(first, "bold"), Piece(row))
            first = " " * indent
