"""The catalog: what packages declare, read from the code; and the page of the documents that is made from it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from foreword.cli.catalog_page import catalog_page
from foreword.kernel.catalog import Catalog, Unread, catalog
from foreword.kernel.events import Mode

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "events.md"

EVENTS = '''
    """Events of Acme."""
    from __future__ import annotations
    from collections.abc import Awaitable, Callable
    from foreword import Event, Mode, ScopeKey

    async def _ordered(order: Order, /, rush: bool = False, *, by: str, call_next: Callable[[], Awaitable[Order]]) -> Order:
        """An order comes in.

        A listener may change it.
        """
        raise NotImplementedError

    def _changed(*names: str, **more: int) -> None:
        """Something changed."""

    def _asked(): ...

    def _scope_of(order: Order) -> ScopeKey | None:
        """The scope of whoever orders.

        And more.
        """

    def _bare(order: Order) -> ScopeKey | None: ...

    ORDERED = Event("acme/ordered", Mode.WATERFALL, _ordered, subject=_scope_of)
    CHANGED = Event("acme/changed", Mode.EMIT, _changed, on_error="log")
    ASKED = Event("acme/asked", Mode.SERIAL, _asked, subject=_bare)
    TOLD = Event("acme/told", Mode.PARALLEL, lambda order: None)
    _PRIVATE = Event("acme/private", Mode.EMIT, _changed)
'''
SERVICES = '''
    from foreword import Context, Service, SystemPrompt, plugin
    from acme.events import ORDERED

    class Config:
        """A config."""

    @plugin(name="acme-desk", config=Config)
    def desk(config: Config, ctx: Context) -> None: ...

    class Desk(Service):
        """Takes orders.

        Args:
            many: not of interest to whoever uses it.
        """

        @classmethod
        def as_plugin(cls):
            return desk

    class Shelf(Service):
        pass

    class _Hidden(Service):
        """Nobody's business."""

    class NoService:
        """Nor this."""
'''

Write = Callable[[Mapping[str, str]], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write modules that can be imported, by their paths."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def written(files: Mapping[str, str]) -> None:
        for name, code in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(code), encoding="utf-8")

    yield written
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("acme", "other"):
            del sys.modules[name]


@pytest.fixture
def acme(write: Write) -> Catalog:
    """What a package declares in two modules, and exports lazily from its top."""
    top = """
        __all__ = ["ORDERED", "Shelf"]

        def __getattr__(name):
            from acme import desk, events
            return {"ORDERED": events.ORDERED, "Shelf": desk.Shelf}[name]
    """
    write({"acme/__init__.py": top, "acme/events.py": EVENTS, "acme/desk.py": SERVICES})
    return catalog(["acme"])


def test_events_are_found_by_name(acme: Catalog) -> None:
    """Every event under a public name is listed once, by name, wherever else it is held."""
    assert [event.name for event in acme.events] == ["acme/asked", "acme/changed", "acme/ordered", "acme/told"]


def test_an_event_tells_what_a_listener_must_know(acme: Catalog) -> None:
    """Mode, subject, policy, signature and documentation are the event's own; its place is that of its signature."""
    ordered = acme.events[2]
    assert (ordered.mode, ordered.on_error, ordered.is_async) == (Mode.WATERFALL, "raise", True)
    assert ordered.subject == "the scope of whoever orders"
    assert ordered.doc == "An order comes in.\n\nA listener may change it."
    assert ordered.signature == (
        "(order: Order, /, rush: bool = False, *, by: str, call_next: Callable[[], Awaitable[Order]]) -> Order"
    )
    assert (ordered.home, ordered.module) == ("acme:ORDERED", "acme.events")
    assert str(ordered.source).endswith("acme/events.py:7")


def test_what_an_event_does_not_say_is_left_open(acme: Catalog) -> None:
    """Without subject there is none; a subject without docstring is told by its type; annotations may be missing."""
    asked, changed, _, told = acme.events
    assert (changed.subject, changed.on_error, changed.is_async) == (None, "log", False)
    assert changed.signature == "(*names: str, **more: int) -> None"
    assert (asked.subject, asked.signature, asked.doc) == ("ScopeKey | None", "()", "")
    assert (told.signature, told.home) == ("(order)", "acme.events:TOLD")


def test_each_mode_and_policy_is_told_in_words(acme: Catalog) -> None:
    """How listeners are called, and what their errors do, is said for each mode, and for both policies of emitting."""
    asked, logged, ordered, told = acme.events
    raised = dataclasses.replace(logged, on_error="raise")
    assert len({event.how for event in (asked, logged, ordered, told)}) == 4
    assert len({event.errors for event in (asked, logged, raised, ordered, told)}) == 5


def test_services_are_found(acme: Catalog) -> None:
    """Every public subclass of `Service` that a module defines is listed, with what mounting it mounts."""
    desk, shelf = acme.services
    assert (desk.name, desk.plugin, desk.config, desk.home) == ("Desk", "acme-desk", "Config", "acme.desk:Desk")
    assert desk.doc == "Takes orders."
    assert (shelf.name, shelf.plugin, shelf.config, shelf.home) == ("Shelf", None, None, "acme:Shelf")
    assert shelf.doc == ""
    assert str(shelf.source).endswith("acme/desk.py:22")


def test_where_to_import_from(write: Write) -> None:
    """Best is where a name is exported, else where it is declared; what merely uses it is no place, unless the others
    are private."""
    declared = """
        from foreword import Event, Mode
        def told() -> None: ...
        A, B, C = (Event(name, Mode.EMIT, told) for name in "abc")
    """
    write({
        "acme/__init__.py": "from acme._inside import C as C",
        "acme/api/__init__.py": "from acme.events import A, B\n__all__ = ['A']",
        "acme/events.py": declared,
        "acme/use.py": "from acme.events import A, B\nfrom acme._inside import C",
        "acme/_inside.py": declared.replace("A, B, C =", "_A, _B, C ="),
    })  # fmt: skip
    homes = [event.home for event in catalog(["acme"]).events]
    assert homes == ["acme.api:A", "acme.events:B", "acme.events:C", "acme:C"]


def test_what_is_imported_from_elsewhere_is_not_theirs(write: Write) -> None:
    """A package does not declare what it imports from another one."""
    write({"other.py": "from foreword import SYSTEM_PROMPT_ASSEMBLE, SystemPrompt"})
    assert catalog(["other"]) == Catalog((), ())


def test_a_module_may_be_named_alone(write: Write, acme: Catalog) -> None:
    """A module that is no package is read by itself; naming things twice lists them once."""
    alone = catalog(["acme.events", "acme.events"])
    assert [event.name for event in alone.events] == [event.name for event in acme.events]
    assert alone.services == ()
    assert alone.events[2].home == "acme.events:ORDERED"


def test_what_cannot_be_imported_is_told(write: Write) -> None:
    """A module below that lacks a package is listed as unread, and the others are read; ``__main__`` is never run."""
    write({
        "acme/__init__.py": "",
        "acme/__main__.py": "raise SystemExit('run')",
        "acme/a/__init__.py": "import no_such_package",
        "acme/a/b.py": "raise RuntimeError('not reached')",
        "acme/c/d.py": "raise RuntimeError('no package without __init__')",
        "acme/events.py": EVENTS,
    })  # fmt: skip
    found = catalog(["acme"])
    assert len(found.events) == 4
    assert found.unread == (Unread("acme.a", "No module named 'no_such_package'"),)


def test_a_lazy_name_that_lacks_a_package(write: Write) -> None:
    """A name that is loaded when first used, and cannot be here, is passed over."""
    lazy = (
        "__all__ = ['X', 'Y']\ndef __getattr__(name):\n    raise (ImportError if name == 'X' else AttributeError)(name)"
    )
    write({"other.py": lazy})
    assert catalog(["other"]) == Catalog((), ())


def test_faults_of_the_code_come_through(write: Write) -> None:
    """What is named and cannot be imported, and whatever else a module raises, is the caller's to see."""
    with pytest.raises(ModuleNotFoundError, match="acme"):
        catalog(["acme"])
    write({"acme/__init__.py": "", "acme/broken.py": "1 / 0"})
    with pytest.raises(ZeroDivisionError):
        catalog(["acme"])


def test_entries_are_values(acme: Catalog) -> None:
    """Reading twice gives equal entries, which cannot be changed."""
    assert catalog(["acme"]) == acme
    with pytest.raises(dataclasses.FrozenInstanceError):
        acme.events[0].name = "x"  # type: ignore[misc]


def test_the_page_of_the_documents_is_up_to_date() -> None:
    """`docs/reference/events.md` is what the code gives."""
    made = catalog_page(["foreword"], catalog(["foreword"]))
    on_disk = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    assert on_disk == made, "the page is out of date: run `make docs`, and commit docs/reference/events.md"
