"""A batch before its first request: created within limits, its file checked, its rows made."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.batch.models import Batch, Item
from apps.core.models import ApiKey
from apps.gateway.batches import check_task
from apps.gateway.files import store
from apps.gateway.models import FileBatch
from apps.gateway.pools.look_ups import forget_servers
from apps.servers.models import Server
from apps.work import services as work
from apps.work.models import Task
from tests.gateway.batches.steps import check, line, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def key(alice: User) -> ApiKey:
    forget_servers()
    return ApiKey.issue(user=alice, name="laptop")[0]


def codes(batch: FileBatch) -> list[str]:
    assert batch.status == "failed"
    assert batch.ended
    return [error["code"] for error in batch.errors]


def test_requests_become_the_rows_of_a_job(key: ApiKey, server: Server) -> None:
    ApiKey.objects.update(in_flight=2, lane="idle")
    batch = check(start(key, line("a") + line("b", max_tokens=5)))  # asks the server for its models
    assert (batch.status, batch.requests) == ("in_progress", 2)
    assert batch.job is not None
    assert (batch.job.name, batch.job.width) == ("Batch in.jsonl · key laptop", 2)
    assert batch.job.spec["lane"] == "idle"
    rows = Item.objects.filter(batch=batch.job).order_by("index")
    assert [row.input["custom_id"] for row in rows] == ["a", "b"]
    assert rows[1].input["body"]["max_tokens"] == 5
    check(batch)  # a second message of its task
    assert Batch.objects.count() == 1


def test_a_bad_file_is_listed_by_line_and_makes_no_job(key: ApiKey, server: Server) -> None:
    batch = check(start(key, line("a") + b"\xff\n" + line("a")))
    assert codes(batch) == ["invalid_json_line", "duplicate_custom_id"]
    assert [error["line"] for error in batch.errors] == [2, 3]
    assert not Batch.objects.exists()


def test_a_model_that_is_not_there_or_not_allowed_fails_the_batch(
    key: ApiKey, server: Server
) -> None:
    assert codes(check(start(key, line("a", model="none")))) == ["model_not_found"]
    ApiKey.objects.update(allowed_models=["other"])
    assert codes(check(start(key, line("a")))) == ["model_not_allowed"]


def test_without_its_file_or_key_a_batch_fails(key: ApiKey, server: Server) -> None:
    gone = start(key, line("a"))
    assert gone.input_file is not None
    store.remove_file(gone.input_file)
    assert codes(check(gone)) == ["file_not_found"]
    revoked = start(key, line("a"))
    ApiKey.objects.update(revoked=timezone.now())
    assert codes(check(revoked)) == ["invalid_api_key"]


def test_a_file_that_kills_its_worker_or_us_fails_the_batch(
    key: ApiKey, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    worn = start(key, line("a"))
    Task.objects.update(attempts=work.MAX_ATTEMPTS)
    assert codes(check(worn)) == ["internal_error"]
    broken = start(key, line("a"))
    monkeypatch.setattr(check_task, "check_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        check(broken)
    broken.refresh_from_db()
    assert codes(broken) == ["internal_error"]
