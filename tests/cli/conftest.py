"""Fixtures of the command line's tests."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of trusted files of the test's own, which commands use in this process and in others."""
    path = tmp_path_factory.mktemp("own") / "trust.json"
    monkeypatch.setenv("FOREWORD_TRUST", str(path))
    return path
