import pytest

from apps.llm.permits.terms import REDIS_WARMUP_SECONDS
from apps.runtime.redis import sync_redis
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def redis_grants_permits() -> None:
    """Wait, where a run begins here, until Redis grants permits: a second after its start."""
    wait_until(lambda: sync_redis().info("server")["uptime_in_seconds"] >= REDIS_WARMUP_SECONDS)
