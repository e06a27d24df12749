"""Programs that ask the gateway as they would ask a model server."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import uvicorn
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.core.models import ApiKey
from apps.gateway.application import Gateway
from apps.gateway.pools.look_ups import forget_servers
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from tests.waiting import until


async def page_not_found(scope: Any, receive: Any, send: Any) -> None:
    """Stands where Django is."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"Django"})


@pytest.fixture
def gateway() -> Gateway:
    forget_servers()  # those of the test before
    return Gateway(page_not_found)


@pytest.fixture
async def no_counters(loop_closed: None) -> AsyncIterator[None]:
    """Nothing counted for limits and usage, before and after."""
    await _delete_counters()
    yield
    await _delete_counters()


async def _delete_counters() -> None:
    if keys := await async_redis().keys("gateway:*"):
        await async_redis().delete(*keys)


@pytest.fixture
async def token(alice: User) -> str:
    _, token = await sync_to_async(ApiKey.issue)(user=alice, name="laptop")
    return token


@pytest.fixture
async def program(
    gateway: Gateway, token: str, loop_closed: None
) -> AsyncIterator[httpx2.AsyncClient]:
    """alice's program, with her key."""
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=gateway),
        base_url="http://workbench",
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    ) as client:
        yield client


@pytest.fixture
async def root(gateway: Gateway, server: Server, loop_closed: None) -> AsyncIterator[str]:
    """The address of the gateway, served in this loop."""
    served = uvicorn.Server(
        uvicorn.Config(gateway, port=0, lifespan="off", log_level="warning", loop="asyncio")
    )
    serving = asyncio.create_task(served.serve())

    async def has_started() -> bool:
        return served.started

    await until(has_started)
    port = served.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    served.should_exit = True
    await serving
