"""Rows of a batch are stored piece by piece: by whom ever, none is missing and none there twice."""

import os
import signal
import subprocess
import sys

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from apps.batch.models import Batch, Item
from apps.batch.services import servers_to_wake
from apps.core.models import ApiKey
from apps.gateway.batches import lifecycle, make_job
from apps.gateway.models import FileBatch
from apps.gateway.pools.look_ups import forget_servers
from apps.servers.models import Server
from apps.work import services as work
from apps.work.models import Task
from tests.faults.plant import database_url
from tests.gateway.batches.steps import check, line, start

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 5 * make_job.PIECE_ROWS + 7


@pytest.fixture
def key(alice: User, server: Server) -> ApiKey:
    forget_servers()
    return ApiKey.issue(user=alice, name="laptop")[0]


@pytest.fixture
def batch(key: ApiKey) -> FileBatch:
    """A batch of many requests that nobody has read."""
    return start(key, b"".join(line(f"n{number}") for number in range(ROWS)))


def die_at_piece(batch: FileBatch, piece: int) -> None:
    """Let a worker begin, and kill it in the middle of this piece."""
    task = work.find(lifecycle.CHECK, batch.pk)
    assert task is not None
    own = {"DJANGO_SETTINGS_MODULE": "workbench.settings", "DATABASE_URL": database_url()}
    command = [sys.executable, "-m", "tests.gateway.batches.dying_check"]
    died = subprocess.run(
        [*command, str(task.pk), str(piece)], env=os.environ | own, check=False, timeout=200
    )
    assert died.returncode == -signal.SIGKILL
    Task.objects.filter(pk=task.pk).update(lease_until=timezone.now())  # a minute later


def test_workers_that_are_killed_lose_and_double_no_row(batch: FileBatch, server: Server) -> None:
    die_at_piece(batch, 3)
    batch.refresh_from_db()
    job = batch.job
    assert job is not None
    assert (batch.status, job.status, job.total) == ("validating", "paused", 2000)
    assert Item.objects.filter(batch=job).count() == 2000
    assert servers_to_wake() == []  # no pump begins with half of a job
    die_at_piece(batch, 2)
    job.refresh_from_db()
    assert job.total == 3000
    batch = check(batch)
    assert (batch.status, batch.requests, Batch.objects.get().pk) == ("in_progress", ROWS, job.pk)
    rows = Item.objects.filter(batch=job).order_by("index").values_list("index", "input")
    assert [(index, given["custom_id"]) for index, given in rows] == [
        (number, f"n{number}") for number in range(ROWS)
    ]
    assert servers_to_wake() == [server.pk]


def test_a_piece_has_few_rows_and_few_bytes(key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    append = make_job.append_rows

    def noted(job: Batch, piece: list[object]) -> None:
        assert transaction.get_connection().in_atomic_block
        pieces.append(len(piece))
        append(job, piece)  # type: ignore[arg-type]

    monkeypatch.setattr(make_job, "append_rows", noted)
    monkeypatch.setattr(make_job, "PIECE_ROWS", 3)
    monkeypatch.setattr(make_job, "PIECE_BYTES", 2000)
    long = {"messages": [{"role": "user", "content": "x" * 2500}]}
    content = b"".join(line(name) for name in "abcd") + line("e", **long) + line("f")
    assert check(start(key, content)).requests == 6
    assert pieces == [3, 2, 1]


def test_who_cancels_before_all_rows_are_there_ends_the_job(
    batch: FileBatch, browser: Client
) -> None:
    die_at_piece(batch, 2)
    batch.refresh_from_db()
    path = f"/servers/batches/{batch.job_id}/"
    page = browser.get(path).content.decode()
    assert "Reading file" in page
    assert "Resume" not in page
    assert browser.post(f"{path}resume/").status_code == 404
    assert Batch.objects.get().status == "paused"
    browser.post(f"{path}cancel/")
    batch.refresh_from_db()
    assert (batch.status, Batch.objects.get().status) == ("cancelled", "cancelled")
    check_again = work.find(lifecycle.CHECK, batch.pk)
    assert check_again is None


def test_a_file_that_kills_each_worker_ends_the_job_too(batch: FileBatch) -> None:
    die_at_piece(batch, 2)
    Task.objects.update(attempts=work.MAX_ATTEMPTS)
    batch = check(batch)
    assert (batch.status, Batch.objects.get().status) == ("failed", "cancelled")
