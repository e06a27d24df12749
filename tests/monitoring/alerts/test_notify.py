"""Reports of alerts to receivers that fail, and to ones that come back."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from smtplib import SMTPAuthenticationError, SMTPServerDisconnected
from typing import Any

import pytest
from django.core import mail
from pytest_django import Settings

from apps.monitoring.alerts import notify
from apps.monitoring.alerts.notify import MOST_ATTEMPTS, report, send_due, wait_after
from apps.monitoring.models import Alert, AlertKind, Delivery

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECRET = "T0123-secret"


@pytest.fixture
def alert() -> Alert:
    return Alert.objects.create(
        kind=AlertKind.DISK, subject="disk", text="Less than 1 GB is left.", begun=NOON
    )


@pytest.fixture
def statuses(settings: Settings) -> Iterator[list[int]]:
    """What a real webhook answers, one after the other; 204 from then on."""
    answers: list[int] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(answers.pop(0) if answers else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        settings.ALERT_WEBHOOK = f"http://127.0.0.1:{server.server_port}/{SECRET}"
        yield answers
        server.shutdown()
        thread.join()


def test_a_webhook_that_fails_is_called_again_after_longer_waits(
    alert: Alert, statuses: list[int]
) -> None:
    statuses += [500, 503]
    report([alert], NOON)
    send_due(NOON)
    send_due(NOON + timedelta(seconds=29))  # too early
    assert statuses == [503]
    send_due(NOON + timedelta(seconds=30))
    assert Delivery.objects.get().due == NOON + timedelta(seconds=90)
    send_due(NOON + timedelta(seconds=90))
    assert not Delivery.objects.exists()


def test_a_receiver_that_never_answers_is_given_up(
    alert: Alert, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALERT_WEBHOOK = f"http://127.0.0.1:9/{SECRET}"
    report([alert], NOON)
    now, tries = NOON, 0
    while Delivery.objects.exists():
        send_due(now)
        tries += 1
        now += timedelta(hours=2)
    assert tries == MOST_ATTEMPTS
    assert "not sent any more: Less than 1 GB is left." in caplog.text
    assert SECRET not in caplog.text


def test_after_a_failure_the_others_of_a_webhook_wait_for_the_next_check(
    alert: Alert, statuses: list[int]
) -> None:
    statuses += [500, 500]
    report([alert, alert], NOON)
    send_due(NOON)
    assert statuses == [500]
    assert sorted(one.attempts for one in Delivery.objects.all()) == [0, 1]


def test_waits_double_up_to_a_limit() -> None:
    waits = [wait_after(attempts).total_seconds() for attempts in range(1, 12)]
    assert waits[:4] == [30, 60, 120, 240]
    assert waits[-1] == 7200


def test_mail_that_was_refused_is_sent_again(
    alert: Alert, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise SMTPServerDisconnected

    settings.ALERT_EMAILS = ["ops@example.org"]
    report([alert], NOON)
    with monkeypatch.context() as patched:
        patched.setattr(notify, "send_mail", refuse)
        send_due(NOON)
    assert mail.outbox == []
    send_due(NOON + timedelta(minutes=1))
    assert [message.subject for message in mail.outbox] == ["Workbench: Disk almost full"]


def test_the_log_does_not_repeat_what_the_mail_server_said(
    alert: Alert,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: Any) -> None:
        raise SMTPAuthenticationError(535, f"no such login: {SECRET}".encode())

    settings.ALERT_EMAILS = ["ops@example.org"]
    monkeypatch.setattr(notify, "send_mail", refuse)
    report([alert], NOON)
    send_due(NOON)
    assert "SMTPAuthenticationError 535" in caplog.text
    assert SECRET not in caplog.text


def test_a_begin_that_is_sent_after_the_end_still_reports_the_begin(
    alert: Alert, settings: Settings
) -> None:
    settings.ALERT_EMAILS = ["ops@example.org"]
    report([alert], NOON)
    alert.ended = NOON
    alert.save()
    report([alert], NOON)
    send_due(NOON)
    assert [message.body for message in mail.outbox] == [
        "Less than 1 GB is left.",
        "Over: Less than 1 GB is left.",
    ]


def test_without_receivers_nothing_is_noted(alert: Alert) -> None:
    report([alert], NOON)
    assert not Delivery.objects.exists()
