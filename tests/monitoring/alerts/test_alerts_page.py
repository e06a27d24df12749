"""GET /servers/alerts/"""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from apps.monitoring.models import Alert

BEGUN = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.fixture
def admin(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def page(admin: Client) -> str:
    return admin.get("/servers/alerts/").content.decode()


def test_the_page_and_the_mark_are_for_admins(admin: Client, browser: Client) -> None:
    assert "No current alerts." in page(admin)
    Alert.objects.create(kind="gone", subject="server:1", text="“GPU” is away.", begun=BEGUN)
    assert "“GPU” is away." in page(admin)
    assert browser.get("/servers/alerts/").status_code == 403


def test_an_alert_that_is_over_is_listed_with_its_times(admin: Client) -> None:
    ended = datetime.now(UTC)
    Alert.objects.create(kind="swaps", subject="server:1", text="Turns.", begun=BEGUN, ended=ended)
    shown = page(admin)
    assert "No current alerts." in shown
    assert "Last 30 days" in shown
    assert "Models swapped too often" in shown


@pytest.mark.parametrize(
    ("webhook", "emails", "said"),
    [
        ("", [], "Shown here only."),
        ("http://127.0.0.1:9/T0123-secret", [], "Sent to the webhook."),
        ("", ["ops@example.org"], "Sent to ops@example.org."),
    ],
)
def test_the_page_says_who_is_told_and_shows_no_secret(
    admin: Client, settings: Settings, webhook: str, emails: list[str], said: str
) -> None:
    settings.ALERT_WEBHOOK, settings.ALERT_EMAILS = webhook, emails
    assert said in page(admin)
    assert "secret" not in page(admin)
