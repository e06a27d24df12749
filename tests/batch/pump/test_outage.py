"""A server that is away for five minutes behind a proxy: no row fails, and the job goes on soon."""

import asyncio
from collections.abc import Iterator

import pytest

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.pump.watcher import ServerCheck
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch, run_until_done, until_stored
from tests.servers.conftest import server_at
from tests.standins import Standin

pytestmark = pytest.mark.django_db(transaction=True)

OUTAGE_SECONDS = 300.0
ROWS = 40


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    with Standin("saturating", None, tokens_per_second=200) as standin:
        yield standin


@pytest.fixture
def server(db: None, standin: Standin) -> Server:
    standin.change(outage=0)
    return server_at(standin)


@pytest.mark.parametrize("status", [502, 503, 504, 522, 525])
async def test_five_minutes_behind_a_proxy(
    status: int,
    server: Server,
    standin: Standin,
    make_batch: MakeBatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def sleep(check: ServerCheck, seconds: float) -> None:
        """The clock of the outage: pauses take no time here."""
        waited.append(seconds)
        if sum(waited) >= OUTAGE_SECONDS:
            await asyncio.to_thread(standin.change, outage=0)

    monkeypatch.setattr(ServerCheck, "_sleep", sleep)
    await in_db(make_batch, ROWS)
    running = asyncio.create_task(run_until_done(server))
    await until_stored(Item.objects.filter(status=ItemStatus.ACCEPTED).exists)
    await asyncio.to_thread(standin.change, outage=status)
    await running
    rows = await in_db(lambda: list(Item.objects.all()))
    assert [(row.status, row.reason) for row in rows] == [(ItemStatus.ACCEPTED, "")] * ROWS
    assert (await in_db(Batch.objects.get)).status == BatchStatus.DONE
    assert OUTAGE_SECONDS <= sum(waited) <= OUTAGE_SECONDS + 10
