"""What all tests share: how much hypothesis searches, which event loops async tests run on, and that Ctrl-C works."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# No deadlines: a machine shared with other work would make tests fail for its own slowness.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=15, **_COMMON)
settings.register_profile("default", max_examples=100, **_COMMON)
# The same examples in every run, so that a red build can be run again; searching for new ones is what people's runs do.
settings.register_profile("ci", max_examples=100, derandomize=True, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))

# A shell lets what it starts in the background ignore Ctrl-C, and that is inherited by the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every test marked `@pytest.mark.anyio` runs on both; one that is about a single loop parametrises this itself."""
    return request.param
