"""Stores that were made by the Foreword of their time: every later one verifies them, rebuilds from them, and goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.session.keeping import FOLDER, read
from tests.session.support import take_turn

from foreword.session import open_log, verify
from foreword.session.store import open_store

pytestmark = pytest.mark.anyio

KEPT = sorted(FOLDER.glob("*.db"))


def opened(kept: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """A copy of a store, as a URL, and what is in it."""
    copy = shutil.copy(kept, folder / "foreword.db")
    return f"sqlite:{copy}", json.loads(kept.with_suffix(".json").read_text(encoding="utf-8"))


def test_there_are_some() -> None:
    """A store of each format that was released is here."""
    assert [kept.stem for kept in KEPT] == ["format-5"]


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.stem)
@pytest.mark.parametrize("read_only", [True, False])
async def test_it_is_read(kept: Path, read_only: bool, tmp_path: Path) -> None:
    """It is whole up to the heads that were kept, and all events and requests are those that were written down."""
    url, expected = opened(kept, tmp_path)
    async with open_store(url, read_only=read_only, foreign=True) as store, open_log(store) as log:
        for session, told in expected.items():
            found = await verify(log, session, head=told["head"])
            assert found.intact, found
        assert await read(log) == expected


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.stem)
async def test_it_is_gone_on_with(kept: Path, tmp_path: Path) -> None:
    """Each of its sessions is resumed, also the one that a crash left open; what was there before is read as before."""
    url, expected = opened(kept, tmp_path)
    async with open_log(url) as log:
        for session in expected:
            resumed = await log.resume(session)
            take_turn(resumed)
            await resumed.close()
        assert (await verify(log)).intact
        found = await read(log)
        for session, told in expected.items():
            assert found[session]["requests"].items() >= told["requests"].items()
            assert found[session]["events"][: len(told["events"])] == told["events"]
