"""A recorder for whoever uses a vendor's SDK: OpenAI's and Anthropic's clients, sync and async.

    recorder = Recorder("sqlite:foreword.db")
    recorder.attach(client)                                 # an OpenAI, AsyncOpenAI, Anthropic, AsyncAnthropic client
    with recorder.session(labels={"ticket": "4711"}):
        client.chat.completions.create(…)                   # sent as ever, and logged before it is

Level *wire*: what the log holds is read off the bytes that are sent, and each retry of the SDK is an attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from foreword.errors import InactiveContextError
from foreword.integrations.book import Place
from foreword.integrations.exchange import Where
from foreword.integrations.http import Hooks, http_client_of
from foreword.integrations.recording import OnError, Recording

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from foreword.session.ledger import Content
    from foreword.session.log import Log

__all__ = ["Recorder"]


class Recorder:
    """Writes down what SDK clients send and are answered, and changes nothing of it.

    All requests outside of a `session` block are one session. Each request is durable before it is sent. What cannot be
    logged is told by the logger ``foreword.integrations`` and in `faults`, and is sent all the same.

    Args:
        log: the URL of a store, as in ``"sqlite:foreword.db"``, or a log that is open.
        content: how much of what is said is stored; see `foreword.session.open_log`. None for what the log does, or
            all of it.
        labels: of every session.
        on_error: ``"raise"`` to have no request sent that is not in the log.

    Raises:
        ValueError: ``on_error`` is neither ``"warn"`` nor ``"raise"``.
    """

    def __init__(
        self,
        log: str | Log,
        *,
        content: Content | None = None,
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "warn",
    ) -> None:
        self._recording = Recording(log, content=content, labels=labels, on_error=on_error)
        self._usual = Place()
        self._place = ContextVar[Place]("the session of a recorder", default=self._usual)
        self._attached: dict[int, Hooks] = {}  # by the identity of the HTTP client, which the hooks keep alive
        self._closed = False

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be logged, in words, the newest last."""
        return tuple(self._recording.faults)

    def attach(self, client: Any, *, provider: str | None = None) -> Callable[[], None]:
        """Record what a client sends from here on; clients made of it with ``with_options`` are recorded, too.

        Args:
            client: of an SDK; or an HTTP client of httpx2 or httpx, which is then handed to an SDK as ``http_client=``.
            provider: who serves it, as in ``"openai"``: by whose rules `foreword cache` reckons. None for whom the
                address tells; of an unknown one the host is noted, and no price is known.

        Returns:
            A function that ends it. Attaching a client a second time does nothing more.

        Raises:
            NothingToRecordError: the requests of that client cannot be seen.
            InactiveContextError: the recorder is closed.
        """
        if self._closed:
            raise InactiveContextError("this recorder", "make a new one")
        http = http_client_of(client)
        if id(http) not in self._attached:
            self._attached[id(http)] = Hooks(self._recording, http, lambda: Where(self._place.get(), provider=provider))
        hooks = self._attached[id(http)]

        def detach() -> None:
            hooks.remove()
            if self._attached.get(id(http)) is hooks:
                del self._attached[id(http)]

        return detach

    @contextmanager
    def session(self, *, labels: Mapping[str, str] | None = None) -> Generator[None]:
        """What is sent in this block, by this task or thread and by tasks that it starts, is a session of its own.

        Args:
            labels: to find it by, such as tenant, ticket or release.
        """
        place = Place(labels=dict(labels or {}))
        token = self._place.set(place)
        try:
            yield
        finally:
            self._place.reset(token)
            self._recording.leave_now(place)

    def close(self) -> None:
        """Write what is left, let go of all sessions, and detach from all clients; a second time does nothing.

        Raises:
            ExceptionGroup: what could not be written.
        """
        self._closed = True
        for hooks in self._attached.values():
            hooks.remove()
        self._attached.clear()
        self._recording.close_now()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
