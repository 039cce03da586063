"""Some libraries stay behind walls, and load only when what is behind the wall is used.

Who may import whom inside Foreword is checked by import-linter (`make lint`); its contracts are in pyproject.toml.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "foreword"
MODULES = sorted(SRC.rglob("*.py"))


@dataclass(frozen=True)
class Wall:
    """Where some libraries may be imported, and whether only inside functions."""

    libraries: frozenset[str]
    behind: tuple[str, ...]  # files and folders, relative to src/foreword
    lazily: bool


EVENT_LOOPS = Wall(
    frozenset({"anyio", "asyncio", "sniffio", "trio"}),
    behind=(
        "agent/",
        "prompt/asking.py",
        "prompt/cancelling.py",
        "prompt/running.py",
        "kernel/context.py",
        "kernel/fiber.py",
        "kernel/life.py",
        "compose/",
        "integrations/",
        "session/erasure.py",
        "session/log.py",
        "session/session.py",
        "session/store/worker.py",
        "tools/execute.py",
        "tools/registrations.py",
        "testing/",
    ),
    lazily=True,
)
VENDORS = Wall(
    frozenset({"anthropic", "openai", "pydantic_ai"}), behind=("agent/models/", "integrations/"), lazily=False
)
TERMINAL = Wall(frozenset({"click", "rich"}), behind=("cli/",), lazily=False)


@dataclass(frozen=True)
class Import:
    """One import of a library: where it stands, and what it costs."""

    library: str
    line: int
    in_function: bool
    types_only: bool  # under `if TYPE_CHECKING:`, so never carried out


def imports(tree: ast.AST, *, in_function: bool = False, types_only: bool = False) -> Iterator[Import]:
    """All absolute imports in a module, those by `import_module("…")` included."""
    for node in ast.iter_child_nodes(tree):
        for name in imported_names(node):
            yield Import(name.partition(".")[0], node.lineno, in_function, types_only)
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            for child in node.body:
                yield from imports(ast.Module([child], []), in_function=in_function, types_only=True)
            for child in node.orelse:
                yield from imports(ast.Module([child], []), in_function=in_function, types_only=types_only)
            continue
        deeper = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from imports(node, in_function=deeper, types_only=types_only)


def imported_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if ast.unparse(function) in {
            "__import__",
            "import_module",
            "importlib.import_module",
        }:
            return [name]
    return []


def breaches(wall: Wall, path: str, source: str) -> list[str]:
    """What is wrong with a module's imports, one line each."""
    inside = any(path == place or (place.endswith("/") and path.startswith(place)) for place in wall.behind)
    found = []
    for entry in imports(ast.parse(source)):
        if entry.library not in wall.libraries:
            continue
        if not inside:
            found.append(f"{path}:{entry.line} imports {entry.library}; only {', '.join(wall.behind)} may")
        elif wall.lazily and not (entry.in_function or entry.types_only):
            found.append(f"{path}:{entry.line} imports {entry.library} outside a function")
    return found


@pytest.mark.parametrize("wall", [EVENT_LOOPS, VENDORS, TERMINAL], ids=["event loops", "vendors", "terminal"])
def test_walls_hold(wall: Wall) -> None:
    """Event loops are known where providers are run and to the test kit, and load late; vendors' libraries to adapters
    and integrations, terminals to the CLI."""
    assert MODULES, f"no modules in {SRC}"
    found = [
        line
        for module in MODULES
        for line in breaches(wall, module.relative_to(SRC).as_posix(), module.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("prompt/plan.py", "import asyncio", 1),
        ("prompt/plan.py", "def f():\n    from anyio.abc import TaskGroup", 1),
        ("prompt/plan.py", "import importlib\ntrio = importlib.import_module('trio')", 1),
        ("prompt/plan.py", "if TYPE_CHECKING:\n    import anyio", 1),
        ("prompt/plan.py", "import anyio_extras, contextlib\nfrom .asyncio import x", 0),
        ("prompt/asking.py", "import anyio", 1),
        ("prompt/asking.py", "class C:\n    import anyio", 1),
        ("prompt/asking.py", "if TYPE_CHECKING:\n    import anyio\nelse:\n    import trio", 1),
        ("prompt/asking.py", "if TYPE_CHECKING:\n    import anyio\nasync def f():\n    import trio", 0),
    ],
)
def test_a_breach_is_seen(path: str, source: str, expected: int) -> None:
    """The check above sees the ways to import, and tells a late or typing-only import from one that loads."""
    assert len(breaches(EVENT_LOOPS, path, source)) == expected
