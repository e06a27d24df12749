"""kill -9 in mid-job: nothing is lost, nothing doubled, somebody else goes on."""

import os
import random
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone

from apps.batch.models import BatchStatus, ItemStatus, PumpLease
from apps.core.redis import close_async_redis
from apps.llm.client import close_clients
from apps.llm.models import Server
from tests.batch.conftest import MakeBatch, run_pump

ROWS = 40


def database_url() -> str:
    """The test database, as a process of its own is told of it."""
    at = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{at['NAME']}"
    login = f"{quote(at['USER'])}:{quote(at['PASSWORD'])}"
    return f"postgres://{login}@{quote(at['HOST'], safe='')}:{at['PORT'] or 5432}/{at['NAME']}"


def start_pump(server: Server) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.batch.pump_process", str(server.pk)],
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "workbench.settings", "DATABASE_URL": database_url()},
    )


@pytest.mark.django_db(transaction=True)
def test_killed_again_and_again(make_batch: MakeBatch, server: Server) -> None:
    batch = make_batch(ROWS, max_tokens=40)
    done = 0
    for _ in range(2):
        process = start_pump(server)
        deadline = time.monotonic() + 60
        while batch.items.filter(status=ItemStatus.ACCEPTED).count() < done + 5:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.wait()
        done = batch.items.filter(status=ItemStatus.ACCEPTED).count()
        running = batch.items.filter(status=ItemStatus.RUNNING).count()
        assert running <= 4 + 2  # the slots, and what was not yet written down
        # As if the 45 seconds of the lease had passed.
        PumpLease.objects.filter(server=server).update(until=timezone.now())

    @async_to_sync
    async def finish() -> None:
        await run_pump(server)
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
