"""Messages only wake: lost, doubled or without Redis, the rows are there."""

import pytest
from django.test import TestCase
from redis.exceptions import ConnectionError as RedisConnectionError

from apps.batch import pump_heartbeat
from apps.batch.services import wake_pump
from apps.servers.models import Server


def test_wake_waits_for_the_commit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(pump_heartbeat, "publish_work", sent.append)
    with TestCase.captureOnCommitCallbacks(execute=True):
        wake_pump(server.pk)
        assert sent == []
    assert sent == [server.pk]


def test_without_redis_the_job_is_queued_all_the_same(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(server_id: int) -> None:
        raise RedisConnectionError("nobody there")

    monkeypatch.setattr(pump_heartbeat, "publish_work", refuse)
    with TestCase.captureOnCommitCallbacks(execute=True):
        wake_pump(server.pk)
    assert "starts a little later" in caplog.text
