"""Periodic tasks of the monitoring."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta

from celery import shared_task

from apps.llm.client import close_clients
from apps.monitoring.alerts import services as alerts
from apps.monitoring.gpus.read import read_gpus
from apps.monitoring.gpus.reading import GpuReading
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
    gpus = asyncio.run(_ask(list(Server.objects.all())))
    moment = time.time()
    sampling.take_samples(moment, gpus)
    alerts.check(moment)


async def _ask(servers: list[Server]) -> dict[int, list[GpuReading]]:
    """Probe the servers; return the GPUs of those that answered in time."""
    gpus: dict[int, list[GpuReading]] = {}
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_SECONDS):
                await asyncio.gather(*(_ask_one(server, gpus) for server in servers))
    finally:
        await close_clients()
        await close_async_redis()
    return gpus


async def _ask_one(server: Server, gpus: dict[int, list[GpuReading]]) -> None:
    server = await refresh_server(server, max_age=FACTS_AGE)
    gpus[server.pk] = await read_gpus(server)
