"""From a file to a document: YAML through `strictyaml`, TOML through the standard library, both held to the same."""

from __future__ import annotations

import math
import re
import tomllib
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from foreword.errors import DeploymentError, Fault
from foreword.kernel.names import shortened
from foreword.strictyaml import MAX_DEPTH, MAX_SIZE, read, spelled

if TYPE_CHECKING:
    from foreword.compose.faults import Document
    from foreword.strictyaml import Path

__all__ = ["NAMES", "document_of", "path_of", "read_file"]

NAMES: Final = ("foreword.yaml", "foreword.yml", "foreword.toml")
"""What a deployment file is called where nobody names one, the first that is there."""

_MAX_INTEGER: Final = 2**53 - 1
_TOML_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")


class TomlDocument:
    """What a TOML text says. Its reader keeps no lines."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def place(self, path: Path) -> tuple[int, int] | None:
        """None: unknown."""
        return None


def path_of(file: object) -> FilePath:
    """The path of a deployment file, as somebody gave it.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(file, (str, PathLike)):
        raise TypeError(f"the deployment file is {shortened(file)}; give its path, a string or a Path")
    return FilePath(cast("str | PathLike[str]", file))


def read_file(file: FilePath, name: str) -> bytes:
    """The bytes of a deployment file.

    Raises:
        DeploymentError: it is not there, no plain file, too large, or called neither .yaml, .yml nor .toml.
    """
    if file.suffix not in (".yaml", ".yml", ".toml"):
        _refuse(name, "is no deployment file by its name; call it something.yaml, .yml or .toml")
    try:
        if not file.is_file():  # opening what is no plain file may wait for ever
            what = "is no plain file" if file.exists() else f"is not there; {_neighbours(file)}"
            raise DeploymentError([Fault(name, None, "", what)])
        with file.open("rb") as stream:
            data = stream.read(MAX_SIZE + 1)
    except DeploymentError:
        raise  # it is a ValueError, too
    except OSError as fault:
        _refuse(name, f"cannot be read: {fault.strerror or fault}")
    except ValueError as fault:  # a name that no file can have
        _refuse(name, f"cannot be read: {fault}")
    if len(data) > MAX_SIZE:
        _refuse(name, f"has more than {MAX_SIZE:,} bytes, which is the limit")
    return data


def document_of(data: bytes, name: str, *, toml: bool) -> tuple[Document | None, tuple[Fault, ...]]:
    """What a file says, without what is at fault in it (None after a fault of the syntax), and those faults."""
    return _toml(data, name) if toml else read(data, name)


def _refuse(name: str, why: str) -> NoReturn:
    raise DeploymentError([Fault(name, None, "", why)]) from None


def _neighbours(file: FilePath) -> str:
    folder = file.parent
    found = [name for name in NAMES if (folder / name).is_file()]
    return f"{folder} holds {', '.join(found)}" if found else "`foreword init` writes one"


# -- TOML --------------------------------------------------------------------------------------------------------------


def _toml(data: bytes, name: str) -> tuple[Document | None, tuple[Fault, ...]]:
    try:
        text = data.decode("utf-8-sig")
        value = tomllib.loads(text)
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        return None, (Fault(name, line, "", f"byte 0x{data[fault.start]:02X} is not UTF-8; save the file as UTF-8"),)
    except RecursionError:
        return None, (Fault(name, None, "", f"is nested more than {MAX_DEPTH} deep"),)
    except ValueError as fault:  # tomllib's own errors, and an int with too many digits
        place = _TOML_PLACE.search(str(fault))
        why = f"this is no TOML: {fault}"
        found = Fault(name, int(place[1]), "", why, int(place[2])) if place else Fault(name, None, "", why)
        return None, (found,)
    faults: list[Fault] = []
    value = _plain(value, (), name, faults)
    return TomlDocument(value), tuple(faults)


def _plain(value: object, path: Path, name: str, faults: list[Fault]) -> Any:
    """The value as JSON has it; what JSON does not have is a fault, and becomes None."""
    if isinstance(value, (dict, list)) and len(path) >= MAX_DEPTH:
        faults.append(Fault(name, None, spelled(path), f"is nested more than {MAX_DEPTH} deep"))
        return None
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {key: _plain(item, (*path, key), name, faults) for key, item in items}
    if isinstance(value, list):
        members = enumerate(cast("list[object]", value))
        return [_plain(item, (*path, at), name, faults) for at, item in members]
    why = _why_not_plain(value)
    if why is not None:
        faults.append(Fault(name, None, spelled(path), why))
        return None
    return value or 0.0 if isinstance(value, float) else value  # −0.0 does not survive JSON


def _why_not_plain(value: object) -> str | None:
    if isinstance(value, (str, bool)):
        return None
    if isinstance(value, int):
        return None if abs(value) <= _MAX_INTEGER else "is an integer beyond ±(2^53 − 1), which readers round; quote it"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, which JSON does not have"
    return "is a date or time, which JSON does not have; put it in quotes"
