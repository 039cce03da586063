"""What machines do to a log, at a small size; `make faults` does much more of it.

Each suite runs in a Python of its own, from which its victims are forked.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import shim
from tests.faults.running import figures_of, seed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built shim."""
    missing = shim.missing()
    if missing is not None:
        pytest.skip(f"faults of disks: {missing}")
    return shim.build(tmp_path_factory.mktemp("shim"))


def test_kills(tmp_path: Path) -> None:
    """Killed while it appends, erases, migrates, checkpoints, forks, exports or takes over: nothing that was
    acknowledged is lost, nothing that was erased comes back, and every log verifies and goes on."""
    assert figures_of("kills", tmp_path, 14, seed())["kills"] == 14


def test_losses_of_power(tmp_path: Path, made: Path) -> None:
    """What was written since a file's last sync may be gone, in part or as a whole: the same holds."""
    figures = figures_of("power", tmp_path, 14, seed(), with_shim=made)
    assert figures["losses"] == 14
    assert figures["syncs"] > 14  # or the shim saw nothing


def test_losses_of_power_without_syncs(tmp_path: Path, made: Path) -> None:
    """The control: where transactions are not synced, something acknowledged gets lost."""
    assert figures_of("power", tmp_path, 200, seed(), "--control", with_shim=made)["lost"] == 1


def test_failing_calls(tmp_path: Path, made: Path) -> None:
    """Whichever call of the system fails: one clear error, no blind second try, no damage; then it goes on."""
    figures = figures_of("calls", tmp_path, 83, with_shim=made)
    assert figures["failed"] > 10


def test_races(tmp_path: Path) -> None:
    """Two processes want one session, and its writer is stopped and taken over: one chain, and the loser is told."""
    assert figures_of("races", tmp_path, 10, seed())["races"] == 10
