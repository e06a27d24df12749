"""Periodic tasks of the monitoring."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta

from celery import shared_task

from apps.llm.client import close_clients
from apps.monitoring.alerts import services as alerts
from apps.monitoring.history import sampling
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from apps.servers.services import refresh_server

# Servers that nobody asks are probed this often.
FACTS_AGE = timedelta(seconds=60)
REFRESH_SECONDS = 15.0


@shared_task
def take_samples() -> None:
    """Probe the servers, add a sample of each, then open and end alerts."""
    asyncio.run(_refresh(list(Server.objects.all())))
    moment = time.time()
    sampling.take_samples(moment)
    alerts.check(moment)


async def _refresh(servers: list[Server]) -> None:
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_SECONDS):
                probes = (refresh_server(server, max_age=FACTS_AGE) for server in servers)
                await asyncio.gather(*probes)
    finally:
        await close_clients()
        await close_async_redis()
