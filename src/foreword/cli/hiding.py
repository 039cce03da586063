"""What must not be seen: the values that the environment gave to the plugins of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.compose.secrets import Secrets

__all__ = ["Hiding"]


class Hiding:
    """Takes secrets out of texts.

    Args:
        secrets: those of a deployment; None for none, which leaves every text as it is.
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Secrets | None = None) -> None:
        self._secrets = secrets

    def __call__(self, text: str) -> str:
        """What somebody's code says, without secrets; nothing of it where one is too short to be taken out."""
        return text if self._secrets is None else self._secrets.hide(text)

    def name(self, text: str) -> str:
        """A name, or what is made of names, without secrets; very short ones say nothing there, and stay."""
        return text if self._secrets is None else self._secrets.hide(text, withhold=False)
