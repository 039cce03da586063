"""What the tests of the model adapters share: each vendor, a server in its place, and its adapter."""

from collections.abc import AsyncGenerator, Iterator

import pytest
from tests.agent.models.vendors import VENDORS, Adapter, Vendor
from tests.support.recording_server import RecordingServer


@pytest.fixture(scope="module", params=VENDORS, ids=str)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    vendor: Vendor = request.param
    return vendor


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with RecordingServer() as server:
        yield server


@pytest.fixture
async def adapter(vendor: Vendor, server: RecordingServer) -> AsyncGenerator[Adapter]:
    async with vendor.make(server) as adapter:
        yield adapter
