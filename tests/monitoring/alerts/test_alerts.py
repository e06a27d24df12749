"""Alerts: when they begin and end, who sees them and who is told."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.contrib.auth.models import User
from django.core import mail
from pytest_django import Settings

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.monitoring.alerts import conditions
from apps.monitoring.alerts.services import check
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement
from apps.monitoring.models import Alert
from apps.servers.models import Kind, Server, State

DAY = 24 * 3600
NOON = 1_800_000_000 // DAY * DAY + DAY // 2


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOON + seconds, UTC)


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(
        name="GPU",
        base_url="http://gpu/v1",
        state=State.READY,
        state_since=at(-DAY),
        stored_facts={"models": [{"id": "qwen"}]},
    )


@pytest.fixture
def webhook(settings: Settings) -> Iterator[list[dict[str, str]]]:
    """What a real receiver was sent."""
    received: list[dict[str, str]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        settings.ALERT_WEBHOOK = f"http://127.0.0.1:{server.server_port}/"
        yield received
        server.shutdown()
        thread.join()


def kinds() -> list[str]:
    return list(Alert.objects.filter(ended=None).values_list("kind", flat=True))


def check_often(first: float = 0, times: int = 20) -> float:
    """Check every 30 seconds, as the worker does; return the time of the next check."""
    for number in range(times):
        check(NOON + first + number * 30)
    return first + times * 30


def test_a_server_that_stays_away_is_one_alert_until_it_is_back(gpu: Server) -> None:
    Server.objects.update(state=State.UNREACHABLE, state_since=at(0))
    assert [(check_often(seconds, 1), kinds())[1] for seconds in (30, 60, 90)] == [[], [], []]
    for seconds in (120, 150):
        check(NOON + seconds)
        assert kinds() == ["gone"]
    assert Alert.objects.get().begun == at(60)
    Server.objects.update(state=State.READY)
    check_often(180, 4)
    assert Alert.objects.get().ended == at(180)


def test_a_problem_that_comes_and_goes_begins_no_alert(gpu: Server) -> None:
    for seconds in range(0, 1200, 60):
        Server.objects.update(state=State.STUCK)
        check_often(seconds, 1)
        Server.objects.update(state=State.READY)
        check_often(seconds + 30, 1)
    assert not Alert.objects.exists()


def test_an_alert_whose_problem_is_away_for_a_moment_goes_on(gpu: Server) -> None:
    Server.objects.update(state=State.STUCK)
    later = check_often()
    for _ in range(3):
        Server.objects.update(state=State.READY)
        later = check_often(later, 3)
        Server.objects.update(state=State.STUCK)
        later = check_often(later, 1)
    assert kinds() == ["stuck"]
    assert Alert.objects.count() == 1


def test_checks_before_a_pause_of_the_worker_do_not_count(gpu: Server) -> None:
    Server.objects.update(state=State.STUCK)
    later = check_often(0, 2) + 3600
    check_often(later, 2)
    assert kinds() == []
    check_often(later + 60, 1)
    assert Alert.objects.get().begun == at(later)


def test_a_server_that_never_answered_is_no_alert(gpu: Server) -> None:
    Server.objects.update(state=State.UNREACHABLE, state_since=at(-DAY), stored_facts={})
    check_often()
    assert kinds() == []


def test_slower_and_fewer_cache_hits_than_in_the_week_before(gpu: Server) -> None:
    before = Measurement(
        readings=1, seconds=30, timed=5000, timed_ms=100_000, reported=50_000, cached=45_000
    )
    now = Measurement(
        readings=1, seconds=30, timed=5000, timed_ms=250_000, reported=50_000, cached=20_000
    )
    store.add(gpu, {"": before}, NOON - DAY)
    store.add(gpu, {"": now}, NOON - 60)
    check_often(times=5)
    assert kinds() == []
    check_often(150, times=1)
    assert sorted(kinds()) == ["cache", "slower"]
    assert "20 tokens/s, 50 in the week before" in Alert.objects.get(kind="slower").text


def test_models_that_are_swapped_all_the_time_are_an_alert(gpu: Server) -> None:
    Server.objects.update(kind=Kind.LLAMA_SWAP)
    store.add(gpu, {"": Measurement(loads=6)}, NOON - 60)
    check_often(times=3)
    assert kinds() == []
    store.add(gpu, {"": Measurement(loads=2)}, NOON - 30)
    check_often(90, times=3)
    assert kinds() == ["swaps"]
    assert "8 times in ten minutes" in Alert.objects.get().text
    check_often(900, times=4)
    assert kinds() == []


def test_few_tokens_prove_nothing(gpu: Server) -> None:
    store.add(gpu, {"": Measurement(timed=5000, timed_ms=100_000)}, NOON - DAY)
    store.add(gpu, {"": Measurement(timed=50, timed_ms=50_000)}, NOON - 60)
    check_often()
    assert kinds() == []


def test_a_job_without_a_finished_row_has_stalled(gpu: Server, alice: User) -> None:
    batch = Batch.objects.create(
        owner=alice, name="Kettles", status=BatchStatus.RUNNING, started=at(-DAY), total=2
    )
    done = Item.objects.create(batch=batch, index=0, status=ItemStatus.ACCEPTED, finished=at(-60))
    Item.objects.create(batch=batch, index=1)
    check_often()
    assert kinds() == []
    Item.objects.filter(pk=done.pk).update(finished=at(-3600))
    check_often(600)
    assert kinds() == ["stalled"]


def test_begin_and_end_are_sent_to_webhook_and_mail(
    gpu: Server, webhook: list[dict[str, str]], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALERT_EMAILS = ["ops@example.org"]
    with monkeypatch.context() as patched:
        patched.setattr(conditions, "LEAST_DISK_BYTES", 1 << 62)
        later = check_often()
    check_often(later)
    assert [(one["kind"], bool(one["ended"])) for one in webhook] == [
        ("disk", False),
        ("disk", True),
    ]
    assert [message.subject for message in mail.outbox] == [
        "Workbench: Disk almost full",
        "Workbench: Disk almost full (over)",
    ]


def test_a_webhook_that_is_away_loses_no_alert(gpu: Server, settings: Settings) -> None:
    settings.ALERT_WEBHOOK = "http://127.0.0.1:9/"
    Server.objects.update(state=State.UNREACHABLE, state_since=at(-DAY))
    check_often()
    assert kinds() == ["gone"]


def test_alerts_go_after_a_month(gpu: Server) -> None:
    Alert.objects.create(kind="gone", subject="server:1", text="x", begun=at(0), ended=at(1))
    check(NOON + timedelta(days=31).total_seconds())
    assert not Alert.objects.exists()
