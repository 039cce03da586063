"""The pytest plugin: prompts in files that a review can read, and a check that they begin alike in every step.

    def test_support(prompt_snapshot):
        prompt_snapshot(build().render_sync(), "support")

The file is ``prompt_snapshots/test_shop/support.txt`` beside ``test_shop.py``; ``pytest --prompt-update`` writes it.

Pytest loads this by its entry point wherever foreword is installed, so it costs next to nothing until a test asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from foreword.testing.snapshots import Check, Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["assert_stable_prefix", "prompt_snapshot"]

_KEY: Final = pytest.StashKey[Snapshots]()
_OPTION: Final = "foreword_prompt_update"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--prompt-update``."""
    parser.getgroup("foreword").addoption(
        "--prompt-update",
        action="store_true",
        dest=_OPTION,
        help="write the prompt snapshots of the tests that run as they are now, and delete those that no test asks for",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin the record of a run."""
    snapshots = config.stash[_KEY] = Snapshots(config.rootpath, update=bool(config.getoption(_OPTION)))
    config.pluginmanager.register(snapshots, "foreword-prompt-snapshots")


@pytest.fixture
def prompt_snapshot(request: pytest.FixtureRequest) -> Check:
    """Hold a rendering against the file that a review has read: ``prompt_snapshot(rendering, name)``."""
    return Check(request.config.stash[_KEY], request.node)


@pytest.fixture
def assert_stable_prefix() -> Callable[..., None]:
    """See that a prompt begins alike in every step: ``assert_stable_prefix(prompt, contexts, clocks=…)``."""
    from foreword.testing.stable_prefix import assert_stable_prefix

    return assert_stable_prefix
