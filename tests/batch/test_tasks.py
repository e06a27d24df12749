"""Messages only wake: lost, doubled or without a broker, the rows are there."""

import pytest
from django.test import TestCase
from kombu.exceptions import OperationalError

from apps.batch import tasks
from apps.batch.models import BatchStatus
from apps.llm.models import Server
from tests.batch.conftest import MakeBatch


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    messages: list[int] = []
    monkeypatch.setattr(tasks.run_pump, "delay", messages.append)
    return messages


@pytest.mark.django_db(transaction=True)
def test_run_pump_works_the_rows(make_batch: MakeBatch, server: Server, sent: list[int]) -> None:
    batch = make_batch(6)
    tasks.run_pump(server.pk)
    batch.refresh_from_db()
    assert (batch.status, sent) == (BatchStatus.DONE, [])
    tasks.run_pump(server.pk)  # delivered twice


@pytest.mark.django_db(transaction=True)
def test_a_slice_that_is_over_goes_to_the_end_of_the_queue(
    make_batch: MakeBatch, server: Server, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_batch(6)

    async def slice_is_over(*_: object, **__: object) -> bool:
        return True

    monkeypatch.setattr(tasks.pump, "run", slice_is_over)
    tasks.run_pump(server.pk)
    assert sent == [server.pk]


def test_beat_wakes_what_has_no_pump(
    make_batch: MakeBatch, server: Server, sent: list[int]
) -> None:
    tasks.wake_pumps()
    assert sent == []
    make_batch(1)
    tasks.wake_pumps()
    assert sent == [server.pk]


def test_wake_waits_for_the_commit(server: Server, sent: list[int]) -> None:
    with TestCase.captureOnCommitCallbacks(execute=True):
        tasks.wake(server.pk)
        assert sent == []
    assert sent == [server.pk]


def test_without_a_broker_the_job_is_queued_all_the_same(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(server_id: int) -> None:
        raise OperationalError("nobody there")

    monkeypatch.setattr(tasks.run_pump, "delay", refuse)
    with TestCase.captureOnCommitCallbacks(execute=True):
        tasks.wake(server.pk)
    assert "starts a little later" in caplog.text


def test_the_end_of_the_worker_is_noted_before_celery_waits_for_it() -> None:
    heard: list[int] = []
    try:
        tasks._note_and_pass_on(lambda number, frame: heard.append(number), 15, None)
        assert (tasks._ending[0], heard) == (1, [15])
    finally:
        tasks._ending[0] = 0
