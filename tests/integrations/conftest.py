import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Integrations run where their frameworks do: on asyncio."""
    return "asyncio"
