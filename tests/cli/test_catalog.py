"""`foreword catalog`: the events and services of packages, as a list, as JSON and as a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.cli.support import in_terminal, plain, run

from foreword.cli.catalog_list import listener_lines
from foreword.cli.catalog_page import catalog_page
from foreword.cli.wrapping import cell_len
from foreword.kernel.catalog import catalog

EVENTS = '''
    from collections.abc import Awaitable, Callable
    from foreword import Event, Mode, Service

    async def _ordered(order: "Order", call_next: "Callable[[], Awaitable[Order]]") -> "Order":
        """An order comes in. It may
        be a large one.

        * set by hand
        * and kept so
        """

    ORDERED = Event("acme/ordered", Mode.WATERFALL, _ordered)
    ODD = Event("acme/\\x1b[31modd\\u202e", Mode.EMIT, lambda: None)

    class Desk(Service):
        """Takes | orders."""
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a package that declares something."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").write_text("print('imported')\n")
    (tmp_path / "acme" / "events.py").write_text(dedent(EVENTS))
    yield tmp_path
    for name in list(sys.modules):
        if name.partition(".")[0] in ("acme", "broken"):
            del sys.modules[name]


# -- the list ----------------------------------------------------------------------------------------------------------


def test_foreword_itself_is_listed() -> None:
    """Without a package, the catalog is that of foreword: its events with their signatures, its services."""
    ran = run("catalog")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Catalog of foreword  ")
    assert (
        "\nsystem-prompt/assemble  waterfall event\n  async def listener(\n      assembly: PromptAssembly,\n" in ran.out
    )
    assert "\n  import     from foreword import SYSTEM_PROMPT_ASSEMBLE\n" in ran.out
    assert "\nSystemPrompt  service\n" in ran.out


def test_packages_are_added(folder: Path) -> None:
    """A package of the current folder is imported and listed beside foreword; what its code prints goes to stderr."""
    ran = run("catalog", "acme", folder=folder)
    assert (ran.code, ran.err) == (0, "imported\n")
    assert ran.out.startswith("Catalog of foreword, acme  ")
    assert (
        dedent("""
        acme/ordered  waterfall event
          async def listener(order: Order, call_next: Callable[[], Awaitable[Order]]) -> Order

          An order comes in. It may be a large one.

          * set by hand
          * and kept so

          listeners  async functions around each other, each calling the next
          subject    none: all listeners hear it
          errors     go out through the outer listeners to the caller
          import     from acme.events import ORDERED
          declared   acme/events.py:5
        """)
        in ran.out
    )
    assert ran.out.index("\nDesk  service\n") > ran.out.index("\nsystem-prompt/assemble")


@pytest.mark.parametrize("columns", [200, 100, 80, 60, 40])
def test_no_row_is_wider_than_the_terminal(folder: Path, columns: int) -> None:
    """Whatever the width, no row goes beyond it, and very wide terminals are not filled."""
    out = run("catalog", "acme", folder=folder, columns=columns).out
    assert max(map(cell_len, out.splitlines())) <= min(columns, 100)
    assert "acme/ordered  waterfall event\n" in out
    words = " ".join(out.split())
    assert "async functions around each other, each calling the next" in words
    assert "order: Order, call_next: Callable[[], Awaitable[Order]]" in words


def test_a_terminal_gets_nothing_that_acts_on_it(folder: Path) -> None:
    """What packages call their events is spelled out where a terminal would obey it."""
    shown = plain(in_terminal("catalog", "acme", folder=folder, columns=80).out)
    assert "acme/\\x1b[31modd\\u202e  emit event\n" in shown
    assert "\x1b" not in shown


def test_a_signature_that_fits_is_not_wrapped(folder: Path) -> None:
    """A signature stands in one row as long as the terminal has room for it, and no cell longer."""
    row = "  async def listener(order: Order, call_next: Callable[[], Awaitable[Order]]) -> Order"
    assert f"{row}\n" in run("catalog", "acme", folder=folder, columns=len(row)).out
    assert (
        "  async def listener(\n      order: Order,\n"
        in run("catalog", "acme", folder=folder, columns=len(row) - 1).out
    )


def test_a_long_signature_gets_a_line_for_each_parameter() -> None:
    """A signature stands in one line if it fits, else each parameter has its own."""
    event = next(each for each in catalog(["foreword.prompt"]).events if each.name == "system-prompt/assemble")
    (whole,) = listener_lines(event, 200)
    lines = listener_lines(event, len(whole) - 1)
    assert whole == f"async def listener{event.signature}"
    assert lines[0] == "async def listener("
    assert lines[-1] == ") -> PromptAssembly"
    assert [line.strip(" ,") for line in lines[1:-1]] == list(event.parameters)
    compile("\n".join([*lines[:-1], f"{lines[-1]}: ..."]), "listener", "exec")


# -- other forms -------------------------------------------------------------------------------------------------------


def test_json(folder: Path) -> None:
    """`--json` gives the same as one document, every key always there."""
    document = json.loads(run("catalog", "acme", "--json", folder=folder).out)
    assert document["packages"] == ["foreword", "acme"]
    events = {each["name"]: each for each in document["events"]}
    assert events["acme/ordered"] == {
        "name": "acme/ordered",
        "mode": "waterfall",
        "subject": None,
        "on_error": "raise",
        "signature": "(order: Order, call_next: Callable[[], Awaitable[Order]]) -> Order",
        "doc": "An order comes in. It may\nbe a large one.\n\n* set by hand\n* and kept so",
        "import": "acme.events:ORDERED",
        "module": "acme.events",
        "source": "acme/events.py:5",
    }
    assert events["system-prompt/assemble"]["subject"] == "the scope that the assembly is for"
    services = {each["name"]: each for each in document["services"]}
    assert services["Desk"]["plugin"] is None
    assert services["SystemPrompt"]["plugin"] == "system-prompt"
    assert services["SystemPrompt"]["config"] == "SystemPromptConfig"
    assert document["unread"] == []


def test_markdown(folder: Path) -> None:
    """`--markdown` gives a page, to the byte the same in every width."""
    page = run("catalog", "acme", "--markdown", folder=folder).out
    assert page == run("catalog", "acme", "--markdown", folder=folder, columns=40).out
    assert page.startswith("# Events and services\n\n<!-- made by: foreword catalog acme --markdown -->\n")
    assert "| `acme/ordered` | waterfall | An order comes in |\n" in page
    assert "### `acme/ordered`\n\n```py\nfrom acme.events import ORDERED\n\n\nasync def listener(" in page
    assert (
        "### `Desk`\n\n```py\nfrom acme.events import Desk\n```\n\nTakes | orders.\n\n* declared in `acme.events`\n"
        in page
    )
    assert page.endswith("\n")
    assert not page.endswith("\n\n")


def test_a_page_has_only_what_is_there() -> None:
    """A page has no heading for what a package does not declare."""
    nothing = catalog_page(["foreword.errors"], catalog(["foreword.errors"]))
    assert "##" not in nothing.replace("# Events", "")
    assert nothing.endswith("What `foreword.errors` declares, as `foreword catalog foreword.errors` lists it.\n")


# -- what cannot be listed ---------------------------------------------------------------------------------------------


def test_two_forms_at_once() -> None:
    """One form at a time."""
    ran = run("catalog", "--json", "--markdown")
    assert ran.code == 2
    assert "drop one of the two" in ran.err


@pytest.mark.parametrize("typed", ["acme.py", "acme:ORDERED", "./acme", "acme."])
def test_what_is_no_package(folder: Path, typed: str) -> None:
    """A file, an object or a path is told to be no package, before anything is imported."""
    ran = run("catalog", typed, folder=folder)
    assert (ran.code, ran.out) == (2, "")
    if typed != "acme.py":  # which may well be a module of that name
        assert ran.err == f'error: "{typed}" is no package; name one as in an import: acme, or acme.plugins\n'


@pytest.mark.parametrize("name", ["no_such_package", "no_such_package.plugins", "acme.no_such_module"])
def test_a_package_that_is_not_there(folder: Path, name: str) -> None:
    """A package or module that is not found here is told, with the folder and the way out."""
    ran = run("catalog", name, folder=folder)
    assert (ran.code, ran.out) == (2, "")
    missing = name.removesuffix(".plugins")
    assert ran.err.endswith(
        f'error: there is no package "{missing}" here ({folder}); run from the folder it stands in, or install it\n'
    )


def test_code_that_fails(folder: Path) -> None:
    """A package whose code raises is told with the line that did."""
    (folder / "broken").mkdir()
    (folder / "broken" / "__init__.py").write_text("\n1 / 0\n")
    ran = run("catalog", "broken", folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: broken/__init__.py:2: ZeroDivisionError: division by zero, while importing ")
    assert "Traceback" in run("catalog", "broken", "--traceback", folder=folder).err


def test_modules_that_lack_a_package(folder: Path) -> None:
    """Modules that need what is not installed are named in one warning, and in the JSON; the rest is listed."""
    for name in ("a", "b"):
        (folder / "acme" / f"{name}.py").write_text("import no_such_package\n")
    ran = run("catalog", "acme", folder=folder)
    assert ran.code == 0
    assert ran.err.endswith(
        "warning: not listed, since they cannot be imported here: acme.a, acme.b (No module named 'no_such_package')\n"
    )
    assert "acme/ordered" in ran.out
    ran = run("catalog", "acme", "--json", folder=folder)
    assert "warning" not in ran.err
    why = "No module named 'no_such_package'"
    assert json.loads(ran.out)["unread"] == [{"module": "acme.a", "why": why}, {"module": "acme.b", "why": why}]


def test_help_says_that_code_runs() -> None:
    """Who asks for a package's catalog knows that its code runs."""
    assert "so its code runs" in " ".join(run("catalog", "--help").out.split())
