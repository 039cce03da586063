"""What a package says it exports (`__all__`) is what is there: no name missing, none left over, each described."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import foreword


def packages() -> list[str]:
    """`foreword` and its public packages that declare `__all__`."""
    found = ["foreword"]
    for module in pkgutil.walk_packages(foreword.__path__, "foreword."):
        public = not any(part.startswith("_") for part in module.name.split("."))
        if module.ispkg and public and hasattr(importlib.import_module(module.name), "__all__"):
            found.append(module.name)
    return found


def public_names(package: ModuleType) -> set[str]:
    """The public names that are there and the package's own: no modules, nothing that it imported from elsewhere."""
    found = set()
    for name in dir(package):
        if name.startswith("_") or name == "TYPE_CHECKING":
            continue
        value = getattr(package, name)
        home = getattr(value, "__module__", None)
        foreign = isinstance(home, str) and home.partition(".")[0] != "foreword"
        if not isinstance(value, ModuleType) and not (foreign and name not in package.__all__):
            found.add(name)
    return found


@pytest.fixture(params=packages())
def package(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def test_all_is_what_is_there(package: ModuleType) -> None:
    """`__all__` names each public name once and no other."""
    assert len(package.__all__) == len(set(package.__all__))
    assert set(package.__all__) == public_names(package)


def test_each_name_is_ours_and_described(package: ModuleType) -> None:
    """Each exported class or function comes from Foreword and has a docstring that somebody wrote."""
    for name in package.__all__:
        value = getattr(package, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        assert value.__module__.partition(".")[0] == "foreword", name
        doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert doc, f"{name} has no docstring"
        assert not doc.startswith(f"{name}("), f"{name} has only the docstring that dataclass wrote"


def test_star_import_gives_all(package: ModuleType) -> None:
    """`from package import *` brings exactly `__all__`, also where names are loaded on first use."""
    namespace: dict[str, object] = {}
    exec(f"from {package.__name__} import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(package.__all__)


def test_unknown_name_is_refused_as_usual(package: ModuleType) -> None:
    """A name that is not there raises AttributeError that names the package and the name."""
    with pytest.raises(AttributeError, match=rf"{package.__name__}.*no_such_name"):
        package.no_such_name  # noqa: B018
