"""The catalog: which events and services packages declare, read from the code itself.

An event is an `Event` that a module holds under a public name, and whose signature stands in these packages; a service
is a subclass of `Service` that does. What is made inside functions, or provided without such a class, is not listed.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, cast

from foreword.kernel.events import Event, Mode
from foreword.kernel.plugins import spec_of
from foreword.kernel.services import Service
from foreword.kernel.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType, ModuleType

__all__ = ["Catalog", "EventEntry", "ServiceEntry", "Unread", "catalog", "catalog_of"]

_HOW: Final = {
    Mode.EMIT: "plain functions, in order",
    Mode.PARALLEL: "async functions, together",
    Mode.SERIAL: "async functions one by one, until one gives an answer",
    Mode.WATERFALL: "async functions around each other, each calling the next",
}
_ON_ERROR: Final = {
    Mode.PARALLEL: "reach the caller in an ExceptionGroup, when all have heard",
    Mode.SERIAL: "reach the caller; whoever would be asked next is not",
    Mode.WATERFALL: "go out through the outer listeners to the caller",
}
_ON_EMIT: Final = {
    "raise": "reach the caller when all have heard, later ones noted on the first",
    "log": "are logged",
}
_END_OF_PROSE: Final = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")


@dataclass(frozen=True, slots=True)
class EventEntry:
    """A declared event."""

    name: str
    mode: Mode
    subject: str | None  # in words, the scope that it is about; None for an event that all hear
    on_error: Literal["raise", "log"]
    parameters: tuple[str, ...]  # of its listeners, as they would be written
    returns: str
    doc: str
    home: str  # from where to import it: ``module:NAME``
    module: str  # that declares it
    source: Source | None  # None where there is no source code

    @property
    def signature(self) -> str:
        """The signature of a listener, in one line."""
        return f"({', '.join(self.parameters)}){f' -> {self.returns}' if self.returns else ''}"

    @property
    def is_async(self) -> bool:
        """Whether its listeners are async."""
        return self.mode is not Mode.EMIT

    @property
    def how(self) -> str:
        """In words, how its listeners are called."""
        return _HOW[self.mode]

    @property
    def errors(self) -> str:
        """In words, what the errors of listeners do."""
        return _ON_EMIT[self.on_error] if self.mode is Mode.EMIT else _ON_ERROR[self.mode]


@dataclass(frozen=True, slots=True)
class ServiceEntry:
    """A declared service."""

    name: str
    plugin: str | None  # the name of the plugin that mounting the class mounts; None if it cannot be mounted
    config: str | None  # the class of that plugin's config
    doc: str
    home: str
    module: str
    source: Source | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A module that could not be imported, mostly for want of a package that is not installed."""

    module: str
    why: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """What some packages declare; events and services by name."""

    events: tuple[EventEntry, ...]
    services: tuple[ServiceEntry, ...]
    unread: tuple[Unread, ...] = ()


def catalog(names: Iterable[str]) -> Catalog:
    """Import packages, and list what they declare.

    Args:
        names: of packages, each with all modules below it but ``__main__``; or of single modules.

    Raises:
        ImportError: one of the names cannot be imported; what is below it and cannot be is listed as unread.
        Exception: whatever a module raises when it is imported.
    """
    unread: list[Unread] = []
    found: dict[str, ModuleType] = {}
    for name in names:
        root = import_module(name)
        found.update({module.__name__: module for module in (root, *_below(root, unread))})
    return catalog_of(found.values(), unread)


def catalog_of(modules: Iterable[ModuleType], unread: Iterable[Unread] = ()) -> Catalog:
    """List what modules declare that are imported already."""
    modules = list(modules)
    names = {module.__name__ for module in modules}
    events: dict[Event[Any, Any], list[_Place]] = {}
    services: dict[type[Service], list[_Place]] = {}
    for module in modules:
        for name, value in _public(module):
            place = _Place(module.__name__, name, name in getattr(module, "__all__", ()))
            if _is_event(value) and value.signature.__module__ in names:
                events.setdefault(value, []).append(place)
            elif _is_service(value) and value.__module__ in names:
                services.setdefault(value, []).append(place)
    return Catalog(
        tuple(sorted((_event(*found) for found in events.items()), key=_name)),
        tuple(sorted((_service(*found) for found in services.items()), key=_name)),
        tuple(sorted(set(unread), key=lambda each: each.module)),
    )


# -- modules -----------------------------------------------------------------------------------------------------------


def _below(package: ModuleType, unread: list[Unread]) -> Iterator[ModuleType]:
    """The modules of a package, however deep."""
    for found in iter_modules(getattr(package, "__path__", ()), f"{package.__name__}."):
        if found.name.endswith(".__main__"):  # to import it is to run it
            continue
        try:
            module = import_module(found.name)
        except ImportError as error:
            unread.append(Unread(found.name, str(error)))
            continue
        yield module
        yield from _below(module, unread)


def _public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The public names of a module and what they stand for, those included that are loaded when first used."""
    for name in sorted({*vars(module), *getattr(module, "__all__", ())}):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name, None)
        except ImportError:  # such a name, and what it needs is not installed; its own module is listed as unread
            continue
        yield name, value


def _is_event(value: object) -> TypeGuard[Event[Any, Any]]:
    return isinstance(value, Event)


def _is_service(value: object) -> TypeGuard[type[Service]]:
    return isinstance(value, type) and issubclass(value, Service) and value is not Service


# -- entries -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something is held."""

    module: str
    name: str
    is_exported: bool

    def rank(self, declared: str) -> tuple[int, bool, int, str]:
        """How well it serves to import what is declared in a module: what comes first is best."""
        is_private = "._" in f".{self.module}"
        is_mere_use = not self.is_exported and self.module != declared
        return 2 * is_private + is_mere_use, not self.is_exported, self.module.count("."), f"{self.module}:{self.name}"


def _event(event: Event[Any, Any], places: list[_Place]) -> EventEntry:
    signature = inspect.signature(event.signature)
    return EventEntry(
        event.name,
        event.mode,
        None if event.subject is None else _subject(event.subject),
        event.on_error,
        tuple(_parameters(signature)),
        str(_spelled(signature.return_annotation)),
        event.doc,
        _home(places, event.signature.__module__),
        event.signature.__module__,
        _source(event.signature),
    )


def _service(service: type[Service], places: list[_Place]) -> ServiceEntry:
    plugin = service.as_plugin()
    spec = None if plugin is None else spec_of(plugin)
    return ServiceEntry(
        service.__qualname__,
        None if spec is None else spec.name,
        None if spec is None or spec.config is None else spec.config.__qualname__,
        _prose(inspect.cleandoc(service.__doc__ or "")),
        _home(places, service.__module__),
        service.__module__,
        _source(service),
    )


def _name(entry: EventEntry | ServiceEntry) -> tuple[str, str]:
    return entry.name, entry.home


def _home(places: list[_Place], declared: str) -> str:
    """From where something is best imported."""
    place = min(places, key=lambda each: each.rank(declared))
    return f"{place.module}:{place.name}"


def _source(declared: object) -> Source | None:
    """The line at which a function or class begins."""
    code: CodeType | None = getattr(declared, "__code__", None)
    if code is not None:
        return Source(code.co_filename, code.co_firstlineno)
    try:
        _, line = inspect.getsourcelines(cast("Any", declared))
        return Source(inspect.getfile(cast("Any", declared)), line)
    except (OSError, TypeError):  # there is no source here, or it is an object that stands for a function
        return None


# -- words -------------------------------------------------------------------------------------------------------------


def _subject(subject: Callable[..., object]) -> str:
    """What an event is about: the first sentence of its subject's docstring, else the type that it gives."""
    doc = (inspect.getdoc(subject) or "").partition("\n")[0].removesuffix(".")
    if doc:
        return doc[:1].lower() + doc[1:]
    return _spelled(inspect.signature(subject).return_annotation) or "a scope"


def _prose(doc: str) -> str:
    """A docstring up to the section that tells arguments and the like."""
    lines = doc.split("\n")
    ends = [at for at, line in enumerate(lines) if line in _END_OF_PROSE]
    return "\n".join(lines[: ends[0]] if ends else lines).strip()


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """Each parameter as it would be written, with the marks between those by position and those by name."""
    last: inspect.Parameter | None = None
    for each in signature.parameters.values():
        if last is not None and last.kind is each.POSITIONAL_ONLY is not each.kind:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and (
            last is None or last.kind not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        ):
            yield "*"
        annotated = each.annotation is not each.empty
        yield str(each.replace(annotation=_spelled(each.annotation)) if annotated else each)
        last = each
    if last is not None and last.kind is last.POSITIONAL_ONLY:
        yield "/"


class _Spelled(str):
    """An annotation as it is to be read, since `inspect` shows the repr of annotations."""

    __slots__ = ()
    __repr__ = str.__str__


def _spelled(annotation: object) -> _Spelled:
    """An annotation without quotes and modules; empty where there is none."""
    if annotation is inspect.Signature.empty:
        return _Spelled()
    if annotation is None or isinstance(annotation, str):
        return _Spelled(annotation)
    return _Spelled(annotation.__qualname__ if isinstance(annotation, type) else repr(annotation))
