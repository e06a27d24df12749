"""Messages only wake: lost, doubled or without Redis, the rows are there."""

import pytest
from django.test import TestCase
from redis.exceptions import ConnectionError as RedisConnectionError

from apps.batch import presence, tasks
from apps.servers.models import Server


def test_wake_waits_for_the_commit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(presence, "call", sent.append)
    with TestCase.captureOnCommitCallbacks(execute=True):
        tasks.wake(server.pk)
        assert sent == []
    assert sent == [server.pk]


def test_without_redis_the_job_is_queued_all_the_same(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(server_id: int) -> None:
        raise RedisConnectionError("nobody there")

    monkeypatch.setattr(presence, "call", refuse)
    with TestCase.captureOnCommitCallbacks(execute=True):
        tasks.wake(server.pk)
    assert "starts a little later" in caplog.text
