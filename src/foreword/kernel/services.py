"""Services: what one plugin provides and others use, looked up by type and bound to whoever asks.

A service is seen by others while the plugin that provides it is active; the plugin itself sees it at once. Which
services a plugin was loaded with is its *epoch*: when a provider goes, comes or changes, the epoch is another one, and
the plugin is unloaded and loaded again. What stands on a plugin itself (it provides it, or a child of it does, or a
plugin that was loaded with such a service) is never in that plugin's epoch: it would come and go with it for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from foreword.errors import DuplicateServiceError, MissingServiceError, shown
from foreword.kernel.effects import Registration
from foreword.kernel.names import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    from foreword.kernel.context import Context
    from foreword.kernel.fiber import Fiber
    from foreword.kernel.plugins import Need

__all__ = ["Epoch", "Provision", "Service", "Services"]

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


@dataclass(frozen=True, slots=True, eq=False)
class Provision:
    """A service and who provides it; the same object of the same plugin is the same provision, also anew."""

    service: object
    fiber: Fiber

    def bound(self, ctx: Context) -> Any:
        """The service as a context sees it."""
        return self.service.bind(ctx) if isinstance(self.service, Service) else self.service

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Provision) and other.service is self.service and other.fiber is self.fiber

    def __hash__(self) -> int:
        return hash((id(self.service), id(self.fiber)))


Epoch: TypeAlias = "tuple[Provision | None, ...]"
"""What a plugin is loaded with: a provision for each need, None for an optional one that nobody provides."""


class Services:
    """Who provides what, in one kernel."""

    __slots__ = ("_provided", "_tell")

    def __init__(self, tell: Callable[[frozenset[type]], None]) -> None:
        self._provided: dict[type, Provision] = {}
        self._tell = tell  # called with the types of which something else may be seen now

    def told(self, fiber: Fiber) -> None:
        """Tell that what a fiber provides is seen, or no longer."""
        keys = frozenset(key for key, provision in self._provided.items() if provision.fiber is fiber)
        if keys:
            self._tell(keys)

    def provide(self, fiber: Fiber, key: type, service: object) -> Registration:
        """Provide a service for a plugin; when the registration is closed, those loaded with it are unloaded soon.

        Raises:
            DuplicateServiceError: somebody provides that type already.
            InactiveContextError: the plugin has gone.
            TypeError: the key is no class.
        """
        _check_key(key, fiber)
        held = self._provided.get(key)
        if held is not None:
            raise DuplicateServiceError(key.__qualname__, fiber.name, held.fiber.name)

        def withdraw() -> None:
            del self._provided[key]
            self._tell(frozenset({key}))

        registration = Registration(f"service {key.__qualname__} of {fiber.name}", fiber, withdraw)
        fiber.add(registration.in_turn)
        self._provided[key] = Provision(service, fiber)
        self._tell(frozenset({key}))
        return registration

    def get(self, ctx: Context, key: type[S]) -> S | None:
        """The service of a type, bound to the context; None if nobody provides it to it now.

        Raises:
            TypeError: the key is no class.
        """
        _check_key(key, ctx.fiber)
        found = self._seen(ctx.fiber, key)
        return None if found is None else cast("S", found.bound(ctx))

    def require(self, ctx: Context, key: type[S]) -> S:
        """As `get`.

        Raises:
            MissingServiceError: nobody provides it to the context now.
            TypeError: the key is no class.
        """
        service = self.get(ctx, key)
        if service is None:
            names = sorted(each.__qualname__ for each in self._provided if self._seen(ctx.fiber, each) is not None)
            raise MissingServiceError(key.__qualname__, ctx.fiber.name, names)
        return service

    def epoch(self, fiber: Fiber, needs: Iterable[Need]) -> Epoch | None:
        """What a plugin would be loaded with now; None if something required is missing."""
        epoch: list[Provision | None] = []
        for need in needs:
            found = self._offered(fiber, need)
            if found is None and not need.optional:
                return None
            epoch.append(found)
        return tuple(epoch)

    def missing(self, fiber: Fiber, needs: Iterable[Need]) -> tuple[str, ...]:
        """The names of the required services that nobody provides to a plugin now."""
        return tuple(
            need.type.__qualname__ for need in needs if not need.optional and self._offered(fiber, need) is None
        )

    def provided(self) -> dict[type, Fiber]:
        """Every service that is provided, and by whom; also of plugins that are not active."""
        return {key: provision.fiber for key, provision in self._provided.items()}

    def _offered(self, fiber: Fiber, need: Need) -> Provision | None:
        found = self._provided.get(need.type)
        return found if found is not None and found.fiber.serves and not _stands_on(found.fiber, fiber) else None

    def _seen(self, fiber: Fiber, key: type) -> Provision | None:
        found = self._provided.get(key)
        return found if found is not None and (found.fiber.serves or found.fiber in (fiber, fiber.plugin)) else None


def _check_key(key: object, fiber: Fiber) -> None:
    if not isinstance(key, type):
        why = "services are found by their class, or one that they stand in for; give that"
        raise TypeError(f"{shown(fiber.name)} names a service by {shortened(key)}, which is no class; {why}")


def _stands_on(fiber: Fiber, base: Fiber) -> bool:
    """Whether a fiber goes with another one: it is that one, or below it, or loaded with what such a one provides."""
    seen = {fiber}
    ahead = [fiber]
    while ahead:
        each = ahead.pop()
        if each is base:
            return True
        below = each.providers if each.parent is None else (each.parent, *each.providers)
        for other in below:
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return False
