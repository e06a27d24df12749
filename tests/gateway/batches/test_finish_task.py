"""The end of a batch: what its files of results say of each request, and its last status."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.batch.models import Batch, Item
from apps.batch.services import cancel_batch, delete_batch
from apps.core.models import ApiKey
from apps.gateway.batches import lifecycle
from apps.gateway.batches.finish_task import CLOSING
from apps.gateway.errors import GatewayError
from apps.gateway.files.store import LIFETIME
from apps.gateway.models import FileBatch, ProgramFile
from apps.gateway.pools.look_ups import forget_servers
from apps.servers.models import Server
from tests.gateway.batches.steps import check, finish, line, start

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = '{"id": "chatcmpl-1",\n "choices": []}'


@pytest.fixture
def batch(alice: User, server: Server) -> FileBatch:
    """A batch of three requests; the first was answered, the second refused."""
    forget_servers()
    key, _ = ApiKey.issue(user=alice, name="laptop")
    found = check(start(key, line("a") + line("b") + line("c")))
    rows, now = Item.objects.filter(batch=found.job), timezone.now()
    rows.filter(index=0).update(
        status="accepted", output={"status_code": 200}, raw=ANSWER, finished=now
    )
    refused = '{"error": {"message": "No."}}'
    rows.filter(index=1).update(
        status="rejected", code="refused", output={"status_code": 400}, raw=refused, finished=now
    )
    return found


def end_row(batch: FileBatch, **values: Any) -> None:
    Item.objects.filter(batch=batch.job, index=2).update(finished=timezone.now(), **values)


def end_job(batch: FileBatch, status: str, **values: Any) -> None:
    Batch.objects.filter(pk=batch.job_id).update(status=status, **values)


def lines(file: ProgramFile | None) -> list[Any]:
    assert file is not None
    return [json.loads(one) for one in file.path.read_bytes().splitlines()]


def test_answers_and_errors_stand_in_two_files(batch: FileBatch) -> None:
    assert finish(batch).status == "in_progress"  # too early
    end_row(batch, status="failed", code="server_failed", reason="It failed.")
    end_job(batch, "done")
    ended = finish(batch)
    assert (ended.status, ended.completed, ended.failed) == ("completed", 1, 2)
    [answer] = lines(ended.output_file)
    assert answer["custom_id"] == "a"
    assert answer["response"]["body"] == json.loads(ANSWER)
    refused, failed = lines(ended.error_file)
    assert (refused["custom_id"], refused["response"]["status_code"]) == ("b", 400)
    assert failed["error"] == {"code": "server_failed", "message": "It failed."}
    finish(ended)  # a second message of its task
    assert ProgramFile.objects.filter(purpose="batch_output").count() == 2


def test_a_cancelled_batch_keeps_what_is_done(batch: FileBatch) -> None:
    end_row(batch, status="running")
    lifecycle.cancel(batch)
    assert finish(batch).status == "in_progress"  # a row in flight is being closed
    end_row(batch, status="accepted", output={"status_code": 200}, raw="{}")
    ended = finish(batch)
    assert (ended.status, ended.completed) == ("cancelled", 2)
    assert [one["custom_id"] for one in lines(ended.output_file)] == ["a", "c"]
    with pytest.raises(GatewayError, match="The batch is cancelled"):
        lifecycle.cancel(ended)


def test_rows_that_nobody_closes_hold_no_batch_back(batch: FileBatch) -> None:
    end_row(batch, status="running")
    lifecycle.cancel(batch)
    Batch.objects.update(finished=timezone.now() - CLOSING)
    ended = finish(batch)
    assert [one["custom_id"] for one in lines(ended.error_file)] == ["b", "c"]
    assert lines(ended.error_file)[1]["error"]["code"] == "batch_cancelled"


def test_a_batch_expires_with_what_is_done(batch: FileBatch) -> None:
    FileBatch.objects.update(expires=timezone.now())
    ended = finish(batch)
    assert (ended.status, ended.completed, ended.failed) == ("expired", 1, 1)
    assert lines(ended.error_file)[1]["error"]["code"] == "batch_expired"
    assert ended.job is not None
    assert ended.job.status == "cancelled"


def test_a_job_that_failed_or_was_cancelled_elsewhere_ends_its_batch(batch: FileBatch) -> None:
    end_job(batch, "failed", reason="The server was removed.")
    failed = finish(batch)
    assert (failed.status, failed.errors[0]["message"]) == ("failed", "The server was removed.")
    assert len(lines(failed.output_file)) == 1
    FileBatch.objects.update(status="in_progress", errors=[])
    assert batch.job is not None
    end_job(batch, "running")
    cancel_batch(batch.job)
    assert finish(batch).status == "cancelled"


def test_without_its_job_a_batch_fails_and_old_jobs_are_deleted(batch: FileBatch) -> None:
    assert batch.job is not None
    delete_batch(batch.job)
    gone = finish(batch)
    assert (gone.status, gone.errors[0]["code"]) == ("failed", "job_deleted")
    key = batch.api_key
    assert key is not None
    old = check(start(key, line("a")))
    FileBatch.objects.filter(pk=old.pk).update(ended=timezone.now() - 2 * LIFETIME)
    lifecycle.delete_old_jobs()
    assert not Batch.objects.exists()
    assert FileBatch.objects.count() == 2


def test_a_batch_whose_file_is_not_checked_yet_is_cancelled_at_once(
    alice: User, server: Server
) -> None:
    key, _ = ApiKey.issue(user=alice, name="laptop")
    waiting = start(key, line("a"))
    lifecycle.cancel(waiting)
    assert check(waiting).status == "cancelled"
    assert not Batch.objects.exists()
