"""What an argument means, as it was typed: a deployment file, a step of a log, or a prompt that Python makes.

It is the name that decides, or a file that somebody left in the folder would take the place of a logged step: what can
be an address is one, whatever is called so; ``./7`` is the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from foreword.errors import InvalidAddressError

__all__ = ["is_address", "is_deployment"]

_FILES: Final = (".yaml", ".yml", ".toml")


def is_deployment(typed: str | None) -> bool:
    """Whether a deployment is meant: by its suffix, by a path that is no address, or since nothing was typed."""
    if typed is None or typed.endswith(_FILES):
        return True
    return ":" not in typed and not typed.endswith(".py") and not is_address(typed)


def is_address(typed: str | None) -> bool:
    """Whether a step of a log is meant: it is no deployment's name, no ``module:name``, and no path of a file."""
    if typed is None or ":" in typed or typed.endswith(_FILES):
        return False
    return _can_be_address(typed) or not Path(typed).exists()


def _can_be_address(typed: str) -> bool:
    from foreword.session.address import parse_address  # with all of a log, 70 ms of the start of who shows a file

    try:
        parse_address(typed)
    except InvalidAddressError:
        return False
    return True
