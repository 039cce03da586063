"""Addresses: ``SESSION[@N | @TURN.STEP][/ATTEMPT]`` names a request, everywhere.

``N`` counts the steps of a session from 1 over all turns. A session's id may be cut to what is unique; ``last`` is the
session with the newest event. Without ``@`` the newest step is meant, without ``/`` its last attempt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from foreword.errors import InvalidAddressError, shown

__all__ = ["LAST", "Address", "parse_address"]

LAST: Final = "last"
"""In the place of a session's id: the one with the newest event."""

_ADDRESS = re.compile(r"(?P<session>[^@/]*)(?:@(?P<step>[^/]*))?(?:/(?P<attempt>.*))?", re.DOTALL)
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_ORDINAL = re.compile(r"[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True)
class Address:
    """An address, taken apart."""

    session: str
    number: int | None = None  # of the step, over all turns
    turn: int | None = None
    step: int | None = None  # in the turn
    attempt: int | None = None

    def __str__(self) -> str:
        step = f"@{self.number}" if self.number is not None else f"@{self.turn}.{self.step}"
        at = "" if self.number is None and self.turn is None else step
        return f"{self.session}{at}{'' if self.attempt is None else f'/{self.attempt}'}"


def parse_address(text: str) -> Address:
    """Take an address apart.

    Raises:
        InvalidAddressError: it is none.
    """
    match = _ADDRESS.fullmatch(text)
    assert match is not None  # noqa: S101 - the expression takes any text
    session, step, attempt = match["session"], match["step"], match["attempt"]
    if _SESSION.fullmatch(session) is None:
        raise InvalidAddressError(text, "it does not begin with the id of a session")
    number = turn = in_turn = None
    if step is not None and "." in step:
        first, _, second = step.partition(".")
        turn, in_turn = _ordinal(text, first, "turn"), _ordinal(text, second, "step")
    elif step is not None:
        number = _ordinal(text, step, "step")
    return Address(session, number, turn, in_turn, None if attempt is None else _ordinal(text, attempt, "attempt"))


def _ordinal(address: str, text: str, what: str) -> int:
    if _ORDINAL.fullmatch(text) is None:
        raise InvalidAddressError(
            address, f'"{shown(text)}" is no number of {"an" if what[0] == "a" else "a"} {what}, from 1'
        )
    return int(text)
