"""Where a server is, and what it is asked with: given, or from the environment; looked at, and never shown."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from foreword.errors import ApiKeyError
from foreword.wire.surrogates import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from foreword.wire.chunks import ModelFailure
    from foreword.wire.profiles import ServerProfile

__all__ = ["Mask", "address_of", "environment_headers", "key_of"]

_LONGEST_MESSAGE: Final = 1000  # characters of what a provider says that are kept
_SHORTEST_SECRET: Final = 4  # characters; shorter values of headers are no secrets, and stand in many a message
_HARMLESS: Final = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "user-agent"})


def address_of(provider: str, given: str | None, profile: ServerProfile) -> str:
    """The address of a provider's server: what was given, else what the environment says, else the profile's own.

    Raises:
        ValueError: there is none, or it is not plain http or https.
    """
    variable = profile.url_variable
    address = given or (os.environ.get(variable) if variable is not None else None) or profile.base_url
    if address is None:
        raise ValueError(f'the address of "{provider}" is not known; give base_url="https://…"')
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f'the address of "{provider}" must begin with http:// or https:// and a host')
    if "@" in parts.netloc or parts.query or parts.fragment:  # it is shown in errors, so no secret may be in it
        raise ValueError(f'the address of "{provider}" must hold no user, query or fragment; give api_key or headers')
    return address.rstrip("/")


def key_of(provider: str, given: str | None, profile: ServerProfile) -> str | None:
    """The key to ask a provider with: what was given, else that of the profile's environment variable.

    Returns:
        None for none, where the profile allows that.

    Raises:
        ApiKeyError: there is none, or one that no header can hold. Does not show it.
    """
    variable = profile.key_variable
    key = os.environ.get(variable) if given is None and variable is not None else given
    if key is None and variable is None:
        return None
    if not key:
        raise ApiKeyError(provider, "is empty" if given is not None else f"is missing; set {variable}, or give api_key")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ApiKeyError(provider, "holds a blank, a line break or something else that no header can; copy it anew")
    return key


def environment_headers(variable: str) -> dict[str, str]:
    """The headers that an SDK takes from a variable of the environment, one a line; names in lower case."""
    parted = (line.partition(":") for line in os.environ.get(variable, "").split("\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in parted if colon}


class Mask:
    """Hides what a server is asked with in what is told of its failures, whoever put it there.

    Args:
        key: the key; None for none.
        headers: further headers, any of which may hold a secret, except for a few whose names say that they do not.
    """

    def __init__(self, key: str | None, headers: Mapping[str, str]) -> None:
        self._names = {secret: "(a header)" for name, value in headers.items() for secret in _secrets_of(name, value)}
        if key is not None:
            self._names[key] = "(the API key)"
        secrets = sorted(self._names, key=len, reverse=True)  # the longer first: one may be a part of another
        self._secrets = re.compile("|".join(map(re.escape, secrets)) or r"(?!)")

    def apply(self, failure: ModelFailure) -> ModelFailure:
        """A failure that can be logged: its message masked, then cut to a length, and without half characters.

        Cut first, a message could end in the midst of a secret, and keep most of it.
        """
        message = self._secrets.sub(lambda found: self._names[found[0]], joined(failure.message))
        return replace(failure, message=message[:_LONGEST_MESSAGE])


def _secrets_of(name: str, value: str) -> Iterator[str]:
    """What of a header must not be shown: its value word by word, without the scheme, as in ``Bearer …``."""
    if name.lower() in _HARMLESS:
        return
    words = value.split()
    for word in words[1:] if len(words) > 1 and words[0].isalpha() else words:
        secret = word.strip(",;")
        if len(secret) >= _SHORTEST_SECRET:
            yield secret
