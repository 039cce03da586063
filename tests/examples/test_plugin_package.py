"""The template of a plugin package, as its users get it: built, installed beside Foreword, used by name.

Foreword and the package are built as wheels and installed into a new environment. What they depend on is lent by the
environment that runs the tests, so that nothing has to be fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "plugin-package"
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "src")
UV = next((uv for uv in (Path(sys.executable).with_name("uv"), ROOT / ".venv" / "bin" / "uv") if uv.exists()), None)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(UV is None, reason="there is no uv here")]

DEPLOYMENT = """\
foreword: 1
system_prompt: {include_harness_identity: false, persona: "You write letters in {{house_language}}."}
plugins:
  - {id: style, use: acme-house-style, config: {avoid: [utilize], terms: terms.txt}}
"""

# Opens the deployment, unloads the plugin, loads it again; prints what an assembly held at each of these moments.
SCRIPT = """\
import asyncio, json
from acme_house_style import house_style
from foreword import SystemPrompt, open_deployment

async def held(prompt: SystemPrompt) -> dict[str, object]:
    assembly = await prompt.assemble()
    return {
        "sections": {each.name: each.text for each in assembly.sections},
        "contexts": {each.name: each.text for each in assembly.contexts},
        "tools": [each.name for each in assembly.tools],
        "variables": assembly.variables,
    }

async def main() -> None:
    async with open_deployment("foreword.yaml") as app:
        [status] = app.plugins
        loaded, text = await held(app.prompt), (await app.prompt.render()).text
        [plugin] = [each for each in app.ctx.fiber.children if each.name == status.name]
        await plugin.dispose()
        before = await held(app.prompt)
        again = await app.ctx.mount(house_style, {"language": "en-US"}).ready()
        await again.dispose()
        after = await held(app.prompt)
    told = {"name": status.name, "version": status.version, "state": status.state, "text": text}
    print(json.dumps({**told, "loaded": loaded, "before": before, "after": after}))

asyncio.run(main())
"""


@dataclass(frozen=True)
class Installed:
    """An environment in which Foreword and the package are installed, and nothing of this checkout is seen."""

    python: Path
    folder: Path  # empty but for what tests put there

    def run(self, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return run(str(self.python), *arguments, folder=folder or self.folder)


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that leads to nothing of this process: neither its import paths nor what its test runner was told."""
    leaks = ("PYTHON", "PYTEST", "COV", "COVERAGE", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(leaks)}
    environment |= {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=300
    )


def done(command: subprocess.CompletedProcess[str]) -> str:
    """What a command printed that has to succeed."""
    assert command.returncode == 0, f"{command.args}\n{command.stdout}\n{command.stderr}"
    return command.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    wheels = [built(ROOT, folder / "foreword"), built(PACKAGE, folder / "package")]
    done(run(sys.executable, "-m", "venv", "--without-pip", "venv", folder=folder))
    python = folder / "venv" / "bin" / "python"
    install = ("pip", "install", "--python", str(python), "--offline", "--no-index", "--no-deps")
    done(run(str(UV), *install, *map(str, wheels), folder=folder))
    lent = sysconfig.get_path("purelib")
    site = done(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder)).strip()
    (Path(site) / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")  # its own .pth files, as of editables, not
    work = folder / "work"
    work.mkdir()
    return Installed(python, work)


def built(project: Path, folder: Path) -> Path:
    """The wheel of a project, made from a copy, without network."""
    folder.mkdir()
    for name in BUILT_FROM:
        if (project / name).is_dir():
            shutil.copytree(project / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (project / name).exists():
            shutil.copy(project / name, folder / name)
    done(run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", folder=folder))
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def test_both_come_from_their_wheels(installed: Installed) -> None:
    """The new environment has Foreword and the package from wheels, with types and texts; what is needed is there."""
    code = (
        "import acme_house_style, foreword, re\n"
        "from importlib.metadata import requires, version\n"
        "from pathlib import Path\n"
        "for package in (acme_house_style, foreword):\n"
        "    folder = Path(package.__file__).parent\n"
        "    print('site-packages' in folder.parts, (folder / 'py.typed').exists())\n"
        "print(len(list(Path(acme_house_style.__file__).parent.glob('texts/*.md'))))\n"
        "for each in requires('acme-house-style'):\n"
        "    version(re.match(r'[\\w-]+', each)[0])\n"
    )
    assert done(installed.run("-W", "error", "-c", code)).split() == ["True"] * 4 + ["2"]


def test_it_is_listed(installed: Installed) -> None:
    """`foreword plugins` tells name and version of what is installed."""
    out = done(installed.run("-m", "foreword", "plugins"))
    assert "acme-house-style" in out
    assert "1.0.0" in out


def test_a_deployment_uses_it_by_name(installed: Installed) -> None:
    """Its parts are in the prompt; unloaded, the assembly is what it was, and is so again when it has been back."""
    (installed.folder / "foreword.yaml").write_text(DEPLOYMENT, encoding="utf-8")
    (installed.folder / "terms.txt").write_text("current account\n", encoding="utf-8")
    told = json.loads(done(installed.run("-W", "error", "-c", SCRIPT)))
    assert (told["name"], told["version"], told["state"]) == ("acme-house-style", "1.0.0", "active")
    assert told["text"].startswith("You write letters in British English.\n\n# How to write\n")
    loaded = told["loaded"]
    assert list(loaded["sections"]) == [
        "deployment:persona",
        "acme-house-style:writing",
        "acme-house-style:avoid",
        "tool:find_term",
    ]
    assert loaded["contexts"] == {"acme-house-style:terms": "Acme's terms:\n- current account"}
    assert loaded["tools"] == ["find_term"]
    assert list(told["before"]["sections"]) == ["deployment:persona"]
    assert (told["before"]["contexts"], told["before"]["tools"], told["before"]["variables"]) == ({}, [], {})
    assert told["after"] == told["before"]


def test_the_command_shows_it(installed: Installed) -> None:
    """`foreword show` prints the deployment's prompt, the plugin's parts beside its name."""
    (installed.folder / "shown.yaml").write_text(DEPLOYMENT, encoding="utf-8")
    (installed.folder / "terms.txt").write_text("current account\n", encoding="utf-8")
    out = done(installed.run("-m", "foreword", "show", "shown.yaml", "--annotate", "--contexts", "--tools"))
    rows = [row.split()[:2] for row in out.splitlines()]
    for note in (
        ["acme-house-style", "acme-house-style:writing"],
        ["acme-house-style", "{{house_language}}"],
        ["acme-house-style", "acme-house-style:terms"],
        ["acme-house-style", "find_term"],
    ):
        assert note in rows, out


def test_its_own_tests_pass(installed: Installed, tmp_path: Path) -> None:
    """The tests of the template, on asyncio and on trio, in the environment where it is installed."""
    copy = tmp_path / "package"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "src"))
    out = done(installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=copy))
    assert "passed" in out
    assert "failed" not in out
