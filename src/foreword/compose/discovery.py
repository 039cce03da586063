"""Which plugins there are, and what a ``use`` of a deployment file means.

Plugins of installed packages are entry points of the group ``foreword.plugins``. Finding them reads metadata only;
their code is imported when a deployment that uses them is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final

from foreword.errors import did_you_mean, shown
from foreword.kernel.plugins import is_declared
from foreword.kernel.services import Service

if TYPE_CHECKING:
    from types import ModuleType

    from foreword.compose.modules import FolderModules

__all__ = ["GROUP", "Discovered", "Found", "Unresolved", "discover", "resolve"]

GROUP: Final = "foreword.plugins"


@dataclass(frozen=True, slots=True)
class Discovered:
    """A plugin that an installed distribution offers."""

    name: str
    distribution: str
    version: str
    target: str  # module:name


@dataclass(frozen=True, slots=True)
class Found:
    """What a ``use`` means."""

    plugin: object
    version: str | None = None  # of the distribution that offers it by name


class Unresolved(Exception):  # noqa: N818 - never leaves this package
    """A ``use`` means nothing; the message says why."""


def discover() -> list[Discovered]:
    """All plugins that installed distributions offer, by name; a name may be there twice, and is an error when used."""
    found = [_discovered(each) for each in entry_points(group=GROUP)]
    return sorted(found, key=lambda each: (each.name, each.distribution))


def resolve(use: str, modules: FolderModules) -> Found:
    """Import what a ``use`` names.

    Args:
        use: an entry point, or ``package.module:name``.
        modules: the folder where modules are sought first.

    Raises:
        Unresolved: there is no such thing.
        Exception: whatever the code raises that is imported.
    """
    if ":" in use:
        return Found(_imported(use, modules))
    offers = [each for each in entry_points(group=GROUP) if each.name == use]
    if not offers:
        known = {each.name for each in entry_points(group=GROUP)}
        near = did_you_mean(use, known, "plugins")
        raise Unresolved(f'no installed package offers a plugin "{shown(use)}"; {near}; or write package.module:name')
    if len(offers) > 1:
        told = sorted((_discovered(each) for each in offers), key=lambda each: each.distribution)
        names = " and ".join(f"{each.distribution} {each.version} ({each.target})" for each in told)
        raise Unresolved(f'"{shown(use)}" is offered by {names}; uninstall one, or write the module:name of one')
    try:
        plugin: object = offers[0].load()
    except AttributeError as error:
        if not _is_about(error, offers[0].attr):
            raise
        raise Unresolved(
            f"{_discovered(offers[0]).distribution} promises {offers[0].value}, which is not there"
        ) from None
    return Found(plugin, _discovered(offers[0]).version)


def _discovered(entry_point: EntryPoint) -> Discovered:
    distribution = entry_point.dist
    name, version = ("?", "?") if distribution is None else (distribution.name, distribution.version)
    return Discovered(entry_point.name, name, version, entry_point.value)


def _imported(use: str, modules: FolderModules) -> object:
    name, _, attribute = use.partition(":")
    try:
        return modules.load(name, lambda module: _attribute(module, attribute))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
        where = f"neither in {modules.folder} nor among the installed packages"
        raise Unresolved(f"there is no module {error.name}, {where}") from None


def _attribute(module: ModuleType, attribute: str) -> object:
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [name for name, value in vars(module).items() if _is_offered(name, value, module)]
            where = f"{module.__name__} ({getattr(module, '__file__', None) or 'a package'})"
            raise Unresolved(f"{where} has no {attribute}; {did_you_mean(attribute, known, 'functions')}") from None
    return found


def _is_offered(name: str, value: object, module: ModuleType) -> bool:
    """Whether a name of a module may be meant for a plugin: not if the module only uses what it stands for."""
    own = getattr(value, "__module__", None) == module.__name__
    if isinstance(value, type):
        return own and issubclass(value, Service) and value.as_plugin() is not None
    return not name.startswith("_") and callable(value) and (own or is_declared(value))


def _is_about(error: AttributeError, attribute: str) -> bool:
    return error.name in attribute.split(".")
