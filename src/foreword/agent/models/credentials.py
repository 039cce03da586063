"""Where a server is, and the key to ask it with: given, or from the environment; looked at, and never shown."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from foreword.errors import ApiKeyError
from foreword.wire.surrogates import joined

if TYPE_CHECKING:
    from foreword.wire.chunks import ModelFailure
    from foreword.wire.profiles import ServerProfile

__all__ = ["address_of", "key_of", "without_key"]


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


def without_key(failure: ModelFailure, key: str | None) -> ModelFailure:
    """A failure that can be logged: its message without the key, whoever put it there, and without half characters."""
    message = joined(failure.message)
    return replace(failure, message=message if key is None else message.replace(key, "(the API key)"))
