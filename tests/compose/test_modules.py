"""Modules beside a deployment file: found there first, and gone when it is closed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compose.support import Folder, text_of

from foreword.compose.modules import FolderModules

PLUGIN = """
from foreword import SystemPrompt
def say(prompt: SystemPrompt) -> None:
    prompt.section("say", {text!r}, order=20)
"""
SAY = "system_prompt: {include_harness_identity: false}\nplugins: [{id: a, use: '%s:say'}]\n"


@pytest.fixture(autouse=True)
def unchanged(folder: Folder) -> Iterator[None]:
    """Whatever a test does, the import system is as it was when its deployments are closed."""
    path = sys.path.copy()
    yield
    assert sys.path == path
    assert not [name for name in sys.modules if _file(name).startswith(str(folder.path))]


def _file(name: str) -> str:
    return str(getattr(sys.modules[name], "__file__", "") or "")


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path, for modules that are installed."""
    path = tmp_path_factory.mktemp("elsewhere")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(path)
        yield path
    for name in [name for name in sys.modules if _file(name).startswith(str(path))]:
        del sys.modules[name]


@pytest.mark.anyio
async def test_a_module_beside_the_file(folder: Folder) -> None:
    """A module beside the file is found, importable while the deployment is open, and gone afterwards."""
    folder.write("plug_a.py", PLUGIN.format(text="From beside."))
    path = sys.path.copy()
    async with folder.open(SAY % "plug_a") as app:
        assert sys.path == path
        assert _file("plug_a") == str(folder.path / "plug_a.py")
        assert await text_of(app) == "From beside."
    assert "plug_a" not in sys.modules
    assert str(folder.path) not in sys.path_importer_cache


@pytest.mark.anyio
async def test_packages(folder: Folder) -> None:
    """Packages, their relative imports, also inside functions, and siblings work, with and without `__init__`."""
    folder.write("pack_a/__init__.py", "")
    folder.write("pack_a/texts.py", "from sibling_a import NAME\nTEXT = f'Text of {NAME}.'\n")
    folder.write("pack_a/later.py", "ORDER = 20\n")
    folder.write("sibling_a.py", "NAME = 'the sibling'\n")
    folder.write(
        "pack_a/prompts.py",
        """
        from foreword import SystemPrompt
        from .texts import TEXT
        def say(prompt: SystemPrompt) -> None:
            from .later import ORDER
            prompt.section("say", TEXT, order=ORDER)
        """,
    )
    folder.write("space_a/plug.py", PLUGIN.format(text="Without init."))
    async with folder.open(SAY % "pack_a.prompts") as app:
        assert await text_of(app) == "Text of the sibling."
    async with folder.open(SAY % "space_a.plug") as app:
        assert await text_of(app) == "Without init."
    assert not {"pack_a", "pack_a.later", "sibling_a", "space_a"} & set(sys.modules)


@pytest.mark.anyio
async def test_the_folder_comes_first(folder: Folder, elsewhere: Path) -> None:
    """The folder's module wins over an installed one of the same name, whose module stays what it is."""
    (elsewhere / "plug_b.py").write_text(PLUGIN.format(text="Installed."))
    (elsewhere / "helper_b.py").write_text("WHERE = 'installed'\n")
    installed = importlib.import_module("plug_b")
    helper = importlib.import_module("helper_b")
    async with folder.open(SAY % "plug_b") as app:
        assert await text_of(app) == "Installed."
    folder.write("helper_b.py", "WHERE = 'Beside'\n")
    folder.write(
        "plug_b.py",
        """
        from foreword import SystemPrompt
        from helper_b import WHERE
        def say(prompt: SystemPrompt) -> None:
            prompt.section("say", f"{WHERE}.", order=20)
        """,
    )
    async with folder.open(SAY % "plug_b") as app:
        assert await text_of(app) == "Beside."
        assert sys.modules["plug_b"] is installed
        assert sys.modules["helper_b"] is helper
    assert sys.modules["plug_b"] is installed
    assert sys.modules["helper_b"] is helper


@pytest.mark.anyio
async def test_modules_with_a_taken_name_are_imported_once(folder: Folder, elsewhere: Path) -> None:
    """Two plugins of one module are of one module, also where its name is taken."""
    (elsewhere / "plug_c.py").write_text("")
    importlib.import_module("plug_c")
    folder.write(
        "plug_c.py",
        """
        from foreword import SystemPrompt
        from foreword.kernel.context import Context
        class Greeting:
            text = "Hello."
        def greet(ctx: Context) -> None:
            ctx.provide(Greeting())
        def say(prompt: SystemPrompt, greeting: Greeting) -> None:
            prompt.section("say", greeting.text, order=20)
        """,
    )
    text = "plugins: [{id: a, use: 'plug_c:say'}, {id: b, use: 'plug_c:greet'}]"
    async with folder.open(text) as app:
        assert (await text_of(app)).endswith("Hello.")


@pytest.mark.anyio
async def test_two_deployments_at_once(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two open deployments with modules of one name each get their own."""
    other = Folder(tmp_path_factory.mktemp("other"))
    folder.write("plug_d.py", PLUGIN.format(text="One."))
    other.write("plug_d.py", PLUGIN.format(text="Two."))
    async with folder.open(SAY % "plug_d") as one, other.open(SAY % "plug_d") as two:
        assert (await text_of(one), await text_of(two)) == ("One.", "Two.")
    async with other.open(SAY % "plug_d") as two:
        assert await text_of(two) == "Two."


@pytest.mark.anyio
async def test_an_edited_module_is_read_anew(folder: Folder) -> None:
    """A deployment that is opened again gets the modules as they are then."""
    for text in ("First.", "The second."):
        folder.write("plug_e.py", PLUGIN.format(text=text))
        async with folder.open(SAY % "plug_e") as app:
            assert await text_of(app) == text


@pytest.mark.anyio
async def test_modules_of_the_program_itself(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program has imported from the folder already is used as it is, and left alone."""
    folder.write("plug_f.py", PLUGIN.format(text="Mine."))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(folder.path)
        mine = importlib.import_module("plug_f")
        async with folder.open(SAY % "plug_f"):
            assert sys.modules["plug_f"] is mine
        assert sys.modules.pop("plug_f") is mine


@pytest.mark.anyio
async def test_what_is_never_shadowed(folder: Folder) -> None:
    """A folder's `foreword.py` or `json.py` does not take the place of the real one."""
    import json

    import foreword

    folder.write("foreword.py", "raise SystemExit('not the real one')\n")
    folder.write("json.py", "raise SystemExit('not the real one')\n")
    folder.write("plug_g.py", "import json\n" + PLUGIN.format(text="Fine."))
    async with folder.open(SAY % "plug_g") as app:
        assert await text_of(app) == "Fine."
    assert sys.modules["foreword"] is foreword
    assert sys.modules["json"] is json


@pytest.mark.anyio
async def test_a_failing_import_leaves_nothing(folder: Folder) -> None:
    """A module that fails half-way leaves no module and no path behind."""
    folder.write("helper_h.py", "")
    folder.write("plug_h.py", "import helper_h\nraise ValueError('half-way')\n")
    faults = await folder.open_faults(SAY % "plug_h")
    assert faults[0].message.startswith("plug_h:say cannot be imported: ValueError: half-way (raised at ")
    assert faults[0].message.endswith("plug_h.py:2)")
    assert not {"plug_h", "helper_h"} & set(sys.modules)


@pytest.mark.anyio
async def test_late_imports_are_explained(folder: Folder) -> None:
    """A sibling that is first imported inside the plugin's function is not found; the fault says what to do."""
    folder.write("helper_i.py", "")
    folder.write("plug_i.py", "def say() -> None:\n    import helper_i\n")
    faults = await folder.open_faults(SAY % "plug_i")
    assert "import it at the top of the plugin's module" in faults[0].message


def test_a_link_to_the_folder(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder that is reached by a link is the folder itself."""
    link = tmp_path_factory.mktemp("links") / "link"
    link.symlink_to(folder.path)
    folder.write("plug_j.py", "VALUE = 1\n")
    with FolderModules(folder.path) as one, FolderModules(link) as two:
        first = one.load("plug_j", lambda module: module)
        assert two.load("plug_j", lambda module: module) is first
    assert "plug_j" not in sys.modules
