"""Modules that stand beside a deployment file: found there first, while its plugins load, and by nobody else after.

The rules, so that two deployments and the program that opens them do not get in each other's way:

* While plugins are imported, the folder stands first on ``sys.path``; a module of the folder then wins over one of the
  same name from elsewhere, which is put aside for that time. Only ``foreword``, and what is loaded of the standard
  library, stay what they are.
* Afterwards ``sys.path`` is as it was, and so are the names that were taken. Modules of the folder whose names were
  free stay importable, for imports inside functions, until the deployment is closed; those whose names were taken live
  on in the plugins that imported them, and nowhere else.
* A module of the folder that the program itself has imported already, from there, is used as it is, and left alone.

Importing is done in one go, without giving way to other tasks; other threads should not import meanwhile.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Set
    from types import ModuleType, TracebackType
    from typing import Self

__all__ = ["FolderModules"]

T = TypeVar("T")
_NEVER_SHADOWED: Final = sys.stdlib_module_names | {"foreword"}


class FolderModules:
    """The modules of one folder, for as long as a deployment is open.

    Args:
        folder: an absolute path.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._before = self._held()
        self._private: dict[str, ModuleType] = {}  # modules of the folder whose names are another's

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._held() - self._before:
            sys.modules.pop(name, None)

    def load(self, module: str, then: Callable[[ModuleType], T]) -> T:
        """Import a module, from the folder if it is there, and do something with it while more can be imported.

        Raises:
            Exception: whatever the module's code raises.
        """
        with self._first_on_path(), self._others_aside():
            return then(importlib.import_module(module))

    def offered(self) -> frozenset[str]:
        """The modules and packages that the folder has to give."""
        return frozenset(each.name for each in iter_modules([str(self.folder)])) - _NEVER_SHADOWED

    @contextmanager
    def _first_on_path(self) -> Generator[None]:
        before, folder = sys.path.copy(), str(self.folder)
        sys.path.insert(0, folder)
        sys.path_importer_cache.pop(folder, None)  # the folder may have been looked at before a file came
        try:
            yield
        finally:
            sys.path[:] = before
            sys.path_importer_cache.pop(folder, None)

    @contextmanager
    def _others_aside(self) -> Generator[None]:
        """Put modules aside that bear the names of the folder's; put them back in the place of the folder's."""
        taken = {top for top in self.offered() if top in sys.modules and not self._is_ours(sys.modules[top])}
        aside = _taken_out(taken)
        sys.modules.update(self._private)
        try:
            yield
        finally:
            self._private.update(_taken_out(taken))
            sys.modules.update(aside)

    def _held(self) -> frozenset[str]:
        """The names in ``sys.modules`` that lead to modules of the folder, or into packages of it."""
        tops = {name for name, module in list(sys.modules.items()) if "." not in name and self._is_ours(module)}
        return frozenset(name for name in list(sys.modules) if name.partition(".")[0] in tops)

    def _is_ours(self, top: ModuleType) -> bool:
        """Whether a module without a package stands in the folder."""
        file: object = getattr(top, "__file__", None)
        if isinstance(file, str):
            path = Path(file)
            return (path.parent.parent if path.stem == "__init__" else path.parent).resolve() == self.folder
        return any(Path(each).parent.resolve() == self.folder for each in getattr(top, "__path__", ()))


def _taken_out(tops: Set[str]) -> dict[str, ModuleType]:
    """Take modules out of ``sys.modules``, with all below them."""
    names = [name for name in sys.modules if name.partition(".")[0] in tops]
    return {name: sys.modules.pop(name) for name in names}
