"""Plugins by name: the entry points of installed distributions, and what a `use` means."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.compose.support import PLUGINS, Folder, text_of

from foreword.compose import Discovered, discover


class Install(Protocol):
    def __call__(self, distribution: str, module: str, entry_points: str, text: str = PLUGINS) -> Path: ...


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A function that installs a distribution, as an installer leaves it."""
    site = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(site)

    def installing(distribution: str, module: str, entry_points: str, text: str = PLUGINS) -> Path:
        info = site / f"{distribution}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[foreword.plugins]\n{entry_points}\n")
        (site / f"{module}.py").write_text(text)
        return site / "mark"

    yield installing
    for name in [
        name for name, each in sys.modules.items() if str(getattr(each, "__file__", "")).startswith(str(site))
    ]:
        del sys.modules[name]


def test_discovering_imports_nothing(install: Install) -> None:
    """Installed plugins are listed by name, with distribution, version and target; none of their code runs."""
    mark = install("acme_suite", "acme_suite", "acme-tools = acme_suite:tools\nacme-billing = acme_suite:billing")
    ours = [each for each in discover() if each.distribution == "acme_suite"]
    assert ours == [
        Discovered("acme-billing", "acme_suite", "1.2", "acme_suite:billing"),
        Discovered("acme-tools", "acme_suite", "1.2", "acme_suite:tools"),
    ]
    assert not mark.exists()


@pytest.mark.anyio
async def test_using_an_entry_point(install: Install, folder: Folder) -> None:
    """A `use` without a colon is an entry point; its version is that of the distribution."""
    install("acme_one", "acme_one", "acme-one = acme_one:billing")
    async with folder.open("plugins: [{id: a, use: acme-one, config: {currency: USD}}]") as app:
        assert "Quote prices in USD." in await text_of(app)
        assert (app.plugins[0].name, app.plugins[0].version) == ("acme-billing", "1.2")


@pytest.mark.anyio
async def test_two_distributions_that_offer_one_name(install: Install, folder: Folder) -> None:
    """A name that two distributions offer is listed twice, and an error that names both when it is used."""
    mark = install("acme_two", "acme_two", "acme-same = acme_two:billing")
    install("acme_three", "acme_three", "acme-same = acme_three:billing\nacme-only = acme_three:legal")
    assert [each.distribution for each in discover() if each.name == "acme-same"] == ["acme_three", "acme_two"]
    async with folder.open("plugins: [{id: a, use: acme-only}]"):
        pass
    mark.unlink()
    (fault,) = await folder.open_faults("plugins: [{id: a, use: acme-same}]")
    assert (fault.line, fault.path) == (2, "plugins[0].use")
    assert "acme_three 1.2 (acme_three:billing) and acme_two 1.2 (acme_two:billing)" in fault.message
    assert not mark.exists()
    async with folder.open("plugins: [{id: a, use: 'acme_two:billing'}]") as app:
        assert app.plugins[0].state == "active"


@pytest.mark.anyio
async def test_what_cannot_be_had(install: Install, folder: Folder) -> None:
    """Whatever is wrong with a `use` is a fault of its own, at its line, with the nearest known name."""
    install("acme_four", "acme_four", "acme-four = acme_four:billing\nacme-gone = acme_four:gone")
    folder.plugins()
    folder.write("needy.py", "import no_such_library\n")
    folder.write("broken.py", "def x(:\n")
    folder.write("odd.py", "thing = 5\nclass Thing: ...\ndef bare(x): ...\ndef late(x: 'Missing'): ...\n")
    faults = await folder.open_faults(
        """
        plugins:
          - {id: a, use: acme-for}
          - {id: b, use: acme-gone}
          - {id: c, use: "plugz:billing"}
          - {id: d, use: "plugs.sub:billing"}
          - {id: e, use: "plugs:biling"}
          - {id: f, use: "needy:x"}
          - {id: g, use: "broken:x"}
          - {id: h, use: "odd:thing"}
          - {id: i, use: "odd:Thing"}
          - {id: j, use: "odd:bare"}
          - {id: k, use: "odd:late"}
          - {id: l, use: "plugs:billing.nothing"}
        """
    )
    assert [(fault.line, fault.path) for fault in faults] == [(at + 3, f"plugins[{at}].use") for at in range(12)]
    words = ['did you mean "acme-four"?', "promises acme_four:gone, which is not there", "there is no module plugz",
             "there is no module plugs.sub", 'did you mean "billing"?', "No module named 'no_such_library'",
             "broken.py:1", "is no plugin", "is no plugin", "has no annotation", "cannot be resolved",
             "has no billing.nothing"]  # fmt: skip
    for fault, expected in zip(faults, words, strict=True):
        assert expected in fault.message, fault


@pytest.mark.anyio
async def test_a_name_that_a_module_has_not_is_told_those_that_may_be_meant(folder: Folder) -> None:
    """What it defines, and plugins that it passes on; not what it imports for its own use, nor classes of its own."""
    folder.plugins("inner.py")
    folder.write(
        "much.py",
        """
        from dataclasses import *
        from foreword import *
        from inner import Config, billing, legal as law

        class Thing: ...
        class Desk(Service): ...
        class Own(SystemPrompt): ...
        def desk(ctx: Context) -> None: ...
        def _helper() -> None: ...
        """,
    )
    (fault,) = await folder.open_faults("plugins: [{id: a, use: 'much:dusk'}]")
    assert fault.message.endswith('has no dusk; did you mean "desk"? known functions: Own, billing, desk, law')
