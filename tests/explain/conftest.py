"""Fixtures of the tests of explanations."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of trusted files of the test's own, and no log but the one that the test names."""
    monkeypatch.setenv("FOREWORD_TRUST", str(Path(tmp_path_factory.mktemp("own")) / "trust.json"))
    monkeypatch.delenv("FOREWORD_LOG", raising=False)
