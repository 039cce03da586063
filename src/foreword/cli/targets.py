"""What a command works on: ``module:name`` or ``path/file.py:name`` of a `SystemPrompt`, or of what makes one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from foreword.cli.faults import Fault, others_code
from foreword.cli.folders import here
from foreword.cli.shown import scope_of, shown_of
from foreword.errors import did_you_mean, with_article
from foreword.prompt.asking import run_loop
from foreword.prompt.context import AssembleContext
from foreword.prompt.system_prompt import SystemPrompt

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from types import ModuleType

    from foreword.cli.shown import Shown

__all__ = ["Target", "answered", "rendered"]

T = TypeVar("T")

_WAY_OUT: Final = "give a function that returns the view of the one you mean"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to look, as it was typed."""

    home: str  # a module, or the path of a file
    name: str  # of the object in it; may be dotted

    @classmethod
    def parse(cls, typed: str) -> Target:
        """Take ``module:name`` or ``path/file.py:name`` apart.

        Raises:
            Fault: it is neither.
        """
        home, colon, name = typed.rpartition(":")
        if home.endswith((".yaml", ".yml", ".toml")):
            raise Fault(f'"{typed}" is no deployment file; one of its agents is shown with: {home} --agent {name}')
        if colon and home and name and "/" not in name:
            return cls(home, name)
        way_out = "name what is in it, as in module:name or path/file.py:name"
        raise Fault(f'"{typed}" does not say which object to show; {way_out}, or give a deployment file (.yaml, .toml)')

    @property
    def file(self) -> Path | None:
        """The file, if it is one."""
        return Path(self.home) if self.home.endswith(".py") or "/" in self.home or "\\" in self.home else None

    def __str__(self) -> str:
        return f"{self.home}:{self.name}"


@contextmanager
def rendered(typed: str, scope: str | None) -> Generator[Shown]:
    """Find a target, assemble its prompt and render it.

    While the context is open its imports work, and sources are told relative to the folder that they come from.

    Args:
        typed: ``module:name`` or ``path/file.py:name``.
        scope: the name of a scope; None for that of the view that the target gives.

    Raises:
        Fault: there is no such target or scope, or its code or its assembly failed.
    """
    target = Target.parse(typed)
    with _importable(target.file):
        yield _render(_make(_look_up(_load(target), target), target), target, scope)


@contextmanager
def answered(typed: str, doing: str, ask: Callable[[SystemPrompt], Coroutine[Any, Any, T]]) -> Generator[T]:
    """Find a target, and ask its prompt something within an event loop; while the context is open, as `rendered`.

    Args:
        typed: ``module:name`` or ``path/file.py:name``.
        doing: what for, as in "linting".
        ask: what to do with the prompt.

    Raises:
        Fault: there is no such target, or its code failed; or the answer is one.
    """
    target = Target.parse(typed)
    with _importable(target.file):
        made = _make(_look_up(_load(target), target), target)

        async def asked() -> T:
            return await ask(_checked(await made if inspect.isawaitable(made) else made, target))

        with others_code(f"{doing} {target}"):
            answer = run_loop(asked, may_hang=True)
        yield answer


def _render(made: object, target: Target, scope: str | None) -> Shown:
    if inspect.isawaitable(made):
        with others_code(f"making and rendering {target}"):
            return run_loop(lambda: _render_async(made, target, scope), may_hang=True)
    prompt = _checked(made, target)
    key = scope_of(prompt, scope, _WAY_OUT)
    with others_code(f"rendering {target}"):
        return shown_of(prompt.render_sync(AssembleContext(scope=key)), key)


async def _render_async(made: Awaitable[object], target: Target, scope: str | None) -> Shown:
    """In one event loop: what an async function opens may belong to its loop."""
    prompt = _checked(await made, target)
    key = scope_of(prompt, scope, _WAY_OUT)
    return shown_of(await prompt.render(AssembleContext(scope=key)), key)


# -- modules and files -------------------------------------------------------------------------------------------------


@contextmanager
def _importable(file: Path | None) -> Generator[None]:
    """Let imports find what stands in the current folder, and before that what stands in the file's own."""
    before = sys.path.copy()
    current = here()
    folders = [current] if file is None else [file.absolute().parent, current]
    sys.path[:0] = [path for path in dict.fromkeys(map(str, folders)) if path != sys.path[0]]
    try:
        yield
    finally:
        sys.path[:] = before


def _load(target: Target) -> ModuleType:
    file = target.file
    if file is not None:
        return _load_file(file.absolute(), target)
    try:
        with others_code(f"importing {target.home}"):
            return importlib.import_module(target.home)
    except Fault as fault:
        missing = fault.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name and _is_above(missing.name, target.home):
            way_out = f"run from the folder it stands in, or give the path of a file, as in path/file.py:{target.name}"
            raise Fault(f'there is no module "{missing.name}" here ({Path.cwd()}); {way_out}') from missing
        raise


def _load_file(path: Path, target: Target) -> ModuleType:
    if not path.is_file():
        raise Fault(f'there is no file "{target.home}" (looked for {path})')
    root, name = _package_of(path)
    with others_code(f"running {target.home}"):
        if "." in name:
            return _load_in_package(path, root, name)
        name = name if name not in sys.modules and name not in sys.stdlib_module_names else str(path)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise Fault(f'"{target.home}" is no Python file; give one that ends in .py')
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def _load_in_package(path: Path, root: Path, name: str) -> ModuleType:
    """A file of a package is imported as such, so that its relative imports work."""
    sys.path.insert(0, str(root))
    module = importlib.import_module(name)
    if module.__file__ is None or not Path(module.__file__).samefile(path):
        raise Fault(f"importing {name} for {path} gave {module.__file__} instead; rename the package of one of them")
    return module


def _package_of(path: Path) -> tuple[Path, str]:
    """The folder that the file is to be imported from, and its module name from there."""
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _is_above(name: str, module: str) -> bool:
    return f"{module}.".startswith(f"{name}.")


# -- from an object to a prompt ----------------------------------------------------------------------------------------


def _look_up(module: ModuleType, target: Target) -> object:
    found: Any = module
    for part in target.name.split("."):
        try:
            with others_code(f"looking up {target}"):
                found = getattr(found, part)
        except Fault as fault:
            if not isinstance(fault.__cause__, AttributeError):
                raise
            known = [name for name in vars(module) if _is_worth_showing(module, name)]
            raise Fault(f'"{target.home}" has no "{target.name}"; {did_you_mean(target.name, known)}') from fault
    return found


def _is_worth_showing(module: ModuleType, name: str) -> bool:
    value = vars(module)[name]
    is_own = getattr(value, "__module__", None) == module.__name__
    return not name.startswith("_") and (isinstance(value, SystemPrompt) or (inspect.isroutine(value) and is_own))


def _make(found: object, target: Target) -> object:
    if isinstance(found, SystemPrompt) or not callable(found):
        return found
    required = _required_parameters(found)
    if required:
        way_out = "give a function that can be called without arguments"
        raise Fault(f"{target} needs arguments ({', '.join(required)}); {way_out}")
    with others_code(f"calling {target}"):
        return found()


def _required_parameters(function: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins tell nothing; calling it will
        return []
    return [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def _checked(made: object, target: Target) -> SystemPrompt:
    if isinstance(made, SystemPrompt):
        return made
    what = "None" if made is None else with_article(type(made).__name__)
    raise Fault(f"{target} gives {what}; show takes a SystemPrompt, or a function that returns one")
