"""The tests of sessions run on each of the stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.support import Stores


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """A place for sessions."""
    return Stores(request.param, tmp_path)
