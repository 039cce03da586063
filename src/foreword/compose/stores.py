"""The log of a deployment: which store it is in, and that it is opened when it is first used."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from foreword.compose.secrets import FromEnvironment, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from foreword.compose.deployment import Deployment, LogSettings
    from foreword.compose.secrets import Secrets
    from foreword.session.log import Log
    from foreword.session.store.contract import Store

__all__ = ["USUAL_STORE", "LateLog", "store_of"]

USUAL_STORE: Final = "sqlite:foreword.db"
"""Where sessions are kept when nobody says otherwise, in the current folder."""

_DAY: Final = 86_400_000  # milliseconds


def store_of(deployment: Deployment, secrets: Secrets, environment: Mapping[str, str]) -> str:
    """The URL of the store that a file names, or the usual one.

    A relative path that stands in the file starts at the file's folder, like every path there; one that the environment
    gives starts at the current folder, as in a shell.
    """
    written = deployment.log.store
    if written is None:
        return USUAL_STORE
    first = next(iter(parsed(written)[0]), "")
    url = str(secrets.filled_in(written))
    if isinstance(first, FromEnvironment) and first.is_set(environment):
        return url
    scheme, _, path = url.partition(":")
    is_relative = scheme == "sqlite" and path and not path.startswith(("/", "~", ":"))
    return f"{scheme}:{deployment.folder / path}" if is_relative else url


class LateLog:
    """A log that is opened when it is first asked for; an async context manager that closes it, if it was opened here.

    Args:
        where: a log, which stays its owner's to close and to look after; or a store, or the URL of one.
        settings: how what is opened here is used.
    """

    __slots__ = ("_is_closed", "_kept_at", "_log", "_settings", "_where")

    def __init__(self, where: Log | Store | str, settings: LogSettings) -> None:
        self._where, self._settings = where, settings
        self._log: Log | None = None
        self._kept_at: int | None = None  # when old contents were last erased, in milliseconds since 1970
        self._is_closed = False

    @property
    def log(self) -> Log:
        """The log.

        Raises:
            StoreError: the URL is none of a store.
            InactiveContextError: the deployment is closed.
        """
        from foreword.errors import InactiveContextError
        from foreword.session.log import Log, open_log

        if self._is_closed:
            raise InactiveContextError("this deployment", "open it anew with open_deployment")
        if isinstance(self._where, Log):
            return self._where
        if self._log is None:
            self._log = open_log(self._where, content=self._settings.content)
        return self._log

    async def look_after(self) -> None:
        """Erase what is older than the file says that it is kept; at most once a day.

        What others are writing stays until another time.

        Raises:
            SessionError: a session is not what was logged.
            StoreError: the store cannot be read or written.
        """
        keep = self._settings.keep
        if keep is None or self.log is self._where:
            return
        now = self.log.clock()
        if self._kept_at is None or now - self._kept_at >= _DAY:
            await self.log.keep(keep / timedelta(days=1))
            self._kept_at = now

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        if self._log is not None:
            await self._log.__aexit__(kind, error, trace)
