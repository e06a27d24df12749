"""kill -9 in mid-job: nothing is lost, nothing doubled, somebody else goes on."""

import os
import random
import subprocess
import sys

import pytest
from asgiref.sync import async_to_sync

from apps.batch import services
from apps.batch.models import Batch, BatchStatus, ItemStatus, PumpLease
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch, run_until_done
from tests.faults.plant import database_url
from tests.llama_process import LlamaProcess
from tests.waiting import wait_until

ROWS = 150  # more than a pump does between two looks of ours


def start_pump(server: Server) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.batch.pump.pump_process", str(server.pk)],
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "workbench.settings", "DATABASE_URL": database_url()},
    )


def accepted(batch: Batch) -> int:
    return batch.items.filter(status=ItemStatus.ACCEPTED).count()


def until_accepted(batch: Batch, rows: int) -> None:
    wait_until(lambda: accepted(batch) >= rows, within=120, what=f"{rows} rows")


@pytest.mark.django_db(transaction=True)
def test_killed_again_and_again(make_batch: MakeBatch, server: Server, llama: LlamaProcess) -> None:
    batch = make_batch(ROWS, max_tokens=40)
    done = 0
    for _ in range(2):
        with llama.slowed():
            process = start_pump(server)
            until_accepted(batch, done + random.randint(5, 12))  # at any point of a commit
            process.kill()
        process.wait()
        done = accepted(batch)
        running = batch.items.filter(status=ItemStatus.RUNNING).count()
        assert running <= 4 + 2  # the slots, and what was not yet written down
        assert services.servers_to_wake() == [server.pk]  # nobody waits for the lease to lapse

    @async_to_sync
    async def finish() -> None:
        await run_until_done(server)
        await close_clients()
        await close_async_redis()

    finish()
    batch.refresh_from_db()
    rows = list(batch.items.order_by("index"))
    assert batch.status == BatchStatus.DONE
    assert [row.index for row in rows] == list(range(ROWS))
    assert {row.status for row in rows} == {ItemStatus.ACCEPTED}
    # Each row was paid for once: the sums were written with the rows.
    assert batch.completion_tokens == sum(row.completion_tokens for row in rows) == ROWS * 40
    assert PumpLease.objects.get(server=server).token == 3
