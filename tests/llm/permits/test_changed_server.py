"""A request that waits for a permit follows the changes of its server, made by another process."""

import asyncio

import pytest

from apps.llm.client import close_clients
from apps.llm.permits import Lane, acquire
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from apps.servers.services import hold_slot, slot_terms
from tests.llm.permits.gauge import PATIENCE, until_row_refused, until_waiting

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loop_closed", "nobody_stays"),
]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquire, "TERMS_SECONDS", 0.1)


@pytest.fixture
def server() -> Server:
    return Server.objects.create(name="Box", base_url="http://127.0.0.1:9/v1", parallel=1)


def wait_elsewhere(server_id: int, lane: Lane) -> Server:
    """Wait for a slot in an event loop of its own, and return the server that it is sent to."""

    async def wait() -> Server:
        server = await in_db(Server.objects.get, pk=server_id)
        async with hold_slot(server, lane=lane):
            pass
        await close_clients()
        await close_async_redis()
        return server

    return asyncio.run(wait())


@pytest.mark.parametrize("lane", [Lane.BATCH, Lane.INTERACTIVE])
async def test_a_waiting_request_sees_the_new_width_and_address(server: Server, lane: Lane) -> None:
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE):
        waiter = asyncio.create_task(asyncio.to_thread(wait_elsewhere, server.pk, lane))
        if lane is Lane.BATCH:
            await until_row_refused(server)
        else:
            await until_waiting(server, 1)
        new = "http://127.0.0.1:10/v1"
        # People leave no slot for rows but what is above their number.
        await Server.objects.filter(pk=server.pk).aupdate(parallel=3, base_url=new)
        found = await waiter
    assert (found.base_url, slot_terms(found).slots) == (new, 3)


async def test_a_removed_server_keeps_its_waiting_requests(server: Server) -> None:
    async with hold_slot(server, lane=Lane.INTERACTIVE):
        waiter = asyncio.create_task(asyncio.to_thread(wait_elsewhere, server.pk, Lane.INTERACTIVE))
        await until_waiting(server, 1)
        await Server.objects.filter(pk=server.pk).adelete()
    async with asyncio.timeout(PATIENCE):
        assert (await waiter).base_url == server.base_url
