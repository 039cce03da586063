"""Fixtures for deployments."""

from pathlib import Path

import pytest
from tests.compose.support import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder."""
    return Folder(tmp_path)
