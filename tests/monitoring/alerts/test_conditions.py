"""Which problems are found, and in which words."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.monitoring.alerts import conditions
from apps.monitoring.alerts.conditions import find_problems
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement
from apps.servers.models import Server, State

pytestmark = pytest.mark.django_db

HOUR = 3600
DAY = 24 * HOUR
NOON = 1_800_000_000 // DAY * DAY + DAY // 2
LONG_AGO = datetime.fromtimestamp(NOON, UTC) - timedelta(days=1)


@pytest.fixture
def gpu() -> Server:
    return Server.objects.create(
        name="GPU",
        base_url="http://gpu/v1",
        state=State.READY,
        state_since=LONG_AGO,
        stored_facts={"models": [{"id": "qwen"}]},
    )


@pytest.fixture
def job(alice: User) -> Batch:
    """A running job that began yesterday and has one row left."""
    batch = Batch.objects.create(
        owner=alice, name="Kettles", status=BatchStatus.RUNNING, started=LONG_AGO, total=1
    )
    Item.objects.create(batch=batch, index=0)
    return batch


def texts(moment: float = NOON) -> list[str]:
    return [found.text for found in find_problems(moment)]


@pytest.mark.parametrize("state", [State.READY, State.LOADING])
def test_a_server_that_answers_or_loads_is_no_problem(gpu: Server, state: State) -> None:
    Server.objects.update(state=state)
    assert texts() == []


def test_a_server_that_is_away_or_stuck_is_named(gpu: Server) -> None:
    Server.objects.update(state=State.UNREACHABLE)
    assert texts() == ["“GPU” does not answer."]
    Server.objects.update(state=State.STUCK)
    assert texts() == ["“GPU” reports that it is ready, but returns no tokens. Restart it."]


def test_the_week_before_does_not_contain_the_last_hour(gpu: Server) -> None:
    """Rows of a full hour may begin before the last 60 minutes and end in them."""
    fast = Measurement(readings=1, seconds=30, timed=5_000, timed_ms=100_000)
    slow = Measurement(readings=1, seconds=30, timed=50_000, timed_ms=2_500_000)
    store.add(gpu, {"": fast}, NOON - DAY)
    store.add(gpu, {"": slow}, NOON - 60)
    for minutes in (0, 10, 50):
        assert texts(NOON + minutes * 60) == ["“GPU” generates 20 tokens/s, 50 in the week before."]


def test_a_little_slower_or_a_little_less_cached_is_no_problem(gpu: Server) -> None:
    before = Measurement(timed=5_000, timed_ms=100_000, reported=50_000, cached=40_000)
    now = Measurement(timed=5_000, timed_ms=150_000, reported=50_000, cached=30_000)
    store.add(gpu, {"": before}, NOON - DAY)
    store.add(gpu, {"": now}, NOON - 60)
    assert texts() == []


def test_a_server_with_no_week_before_is_not_compared(gpu: Server) -> None:
    store.add(gpu, {"": Measurement(timed=5_000, timed_ms=5_000_000)}, NOON - 60)
    assert texts() == []


def test_each_server_is_compared_with_itself(gpu: Server) -> None:
    other = Server.objects.create(name="Laptop", base_url="http://laptop/v1", state=State.READY)
    store.add(gpu, {"": Measurement(timed=5_000, timed_ms=50_000)}, NOON - DAY)
    store.add(other, {"": Measurement(timed=5_000, timed_ms=500_000)}, NOON - 60)
    assert texts() == []


def test_a_stalled_job_says_what_it_waits_for(job: Batch) -> None:
    assert texts() == ["The job “Kettles” has finished no row for 30 minutes."]
    Batch.objects.update(reason="Waiting for “GPU”.")
    assert texts() == ["The job “Kettles” has finished no row for 30 minutes. Waiting for “GPU”."]


def test_a_job_that_just_began_has_not_stalled(job: Batch) -> None:
    Batch.objects.update(started=LONG_AGO + timedelta(hours=23, minutes=45))
    assert texts() == []


def test_a_job_that_waits_for_tomorrow_has_not_stalled(job: Batch) -> None:
    Batch.objects.update(resumes_on=LONG_AGO.date() + timedelta(days=2))
    assert texts() == []


@pytest.mark.parametrize("status", [BatchStatus.PAUSED, BatchStatus.DONE])
def test_a_job_that_does_not_run_has_not_stalled(job: Batch, status: BatchStatus) -> None:
    Batch.objects.update(status=status)
    assert texts() == []


def test_a_job_without_open_rows_has_not_stalled(job: Batch) -> None:
    Item.objects.update(status=ItemStatus.ACCEPTED, finished=LONG_AGO)
    assert texts() == []


def test_a_disk_that_is_almost_full_says_how_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=5 * 1024**2)
    monkeypatch.setattr(conditions.shutil, "disk_usage", lambda _: usage)
    assert texts() == ["Only 5 MB left on the disk of the data folder."]
