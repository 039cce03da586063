"""Services: what one plugin provides and others use, looked up by type and bound to whoever asks.

A service is seen by others while the plugin that provides it is active; the plugin itself sees it at once. Which
services a plugin was loaded with is its *epoch*: when a provider goes, comes or changes, the epoch is another one, and
the plugin is unloaded and loaded again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from foreword.errors import DuplicateServiceError, MissingServiceError
from foreword.kernel.effects import Registration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    from foreword.kernel.context import Context
    from foreword.kernel.fiber import Fiber
    from foreword.kernel.plugins import Need

__all__ = ["Service", "Services"]

S = TypeVar("S")


class Service:
    """A base for services that act for whoever uses them. Any object can be provided; this one adds `bind`."""

    __slots__ = ()

    def bind(self, ctx: Context) -> Self:
        """The service as a context sees it: what is done through it belongs to that context's plugin and scope."""
        return self

    @classmethod
    def as_plugin(cls) -> Callable[..., Any] | None:
        """The plugin that provides this service, for classes that can be mounted as they are; None for others."""
        return None


class Services:
    """Who provides what, in one kernel."""

    __slots__ = ("_provided", "changed")

    def __init__(self) -> None:
        self._provided: dict[type, tuple[object, Fiber]] = {}
        self.changed: Callable[[], None] = _nothing  # told whenever what is seen may have changed

    def provide(self, fiber: Fiber, key: type, service: object) -> Registration:
        """Provide a service for a plugin.

        Raises:
            DuplicateServiceError: somebody provides that type already.
            InactiveContextError: the plugin has gone.
        """
        if key in self._provided:
            raise DuplicateServiceError(key.__qualname__, fiber.name, self._provided[key][1].name)

        def withdraw() -> None:
            del self._provided[key]
            self.changed()

        registration = Registration(f"service {key.__qualname__} of {fiber.name}", fiber, withdraw)
        fiber.add(registration.close)
        self._provided[key] = (service, fiber)
        self.changed()
        return registration

    def get(self, ctx: Context, key: type[S]) -> S | None:
        """The service of a type, bound to the context; None if nobody provides it to it now."""
        found = self._seen(ctx.fiber, key)
        if found is None:
            return None
        service: Any = found[0]
        return cast("S", service.bind(ctx) if isinstance(service, Service) else service)

    def require(self, ctx: Context, key: type[S]) -> S:
        """As `get`.

        Raises:
            MissingServiceError: nobody provides it to the context now.
        """
        service = self.get(ctx, key)
        if service is None:
            names = sorted(each.__qualname__ for each in self._provided if self._seen(ctx.fiber, each) is not None)
            raise MissingServiceError(key.__qualname__, ctx.fiber.name, names)
        return service

    def epoch(self, fiber: Fiber, needs: Iterable[Need]) -> tuple[Fiber | None, ...] | None:
        """The providers that a plugin would be loaded with now; None if a required one is missing."""
        epoch: list[Fiber | None] = []
        for need in needs:
            found = self._seen(fiber, need.type)
            if found is None and not need.optional:
                return None
            epoch.append(None if found is None else found[1])
        return tuple(epoch)

    def missing(self, fiber: Fiber, needs: Iterable[Need]) -> tuple[str, ...]:
        """The names of the required services that nobody provides to a plugin now."""
        return tuple(
            need.type.__qualname__ for need in needs if not need.optional and self._seen(fiber, need.type) is None
        )

    def provided(self) -> dict[type, Fiber]:
        """Every service that is provided, and by whom; also of plugins that are not active."""
        return {key: fiber for key, (_, fiber) in self._provided.items()}

    def _seen(self, fiber: Fiber, key: type) -> tuple[object, Fiber] | None:
        found = self._provided.get(key)
        return found if found is not None and (found[1] is fiber or found[1].serves) else None


def _nothing() -> None:
    return None
