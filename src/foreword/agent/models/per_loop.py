"""One client of a vendor's SDK for each event loop: its connections cannot be used in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from foreword.errors import InactiveContextError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Closable", "PerLoop"]


class Closable(Protocol):
    """What the clients of all SDKs have in common."""

    async def close(self) -> None:
        """Close its connections."""
        ...


C = TypeVar("C", bound=Closable)


class PerLoop(Generic[C]):
    """The clients of one server.

    Args:
        address: of the server, for errors.
        make: makes a client, in the loop that it is for.
    """

    def __init__(self, address: str, make: Callable[[], C]) -> None:
        from anyio.lowlevel import RunVar

        self._address, self._make = address, make
        self._clients = RunVar[C | None](f"the client of {address}", None)
        self._closed = False

    def check_open(self) -> None:
        """See that something can be sent.

        Raises:
            InactiveContextError: it is closed.
        """
        if self._closed:
            raise InactiveContextError(f"the model adapter for {self._address}", "make a new one")

    def get(self) -> C:
        """The client of the event loop that is running."""
        client = self._clients.get()
        if client is None:
            client = self._make()
            self._clients.set(client)
        return client

    async def close(self) -> None:
        """Close the connections of this event loop; nothing can be sent any more."""
        self._closed = True
        client = self._clients.get()
        if client is not None:
            self._clients.set(None)
            await client.close()
