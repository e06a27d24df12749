"""Pages of admins refuse everyone else, whatever the method."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def admin_browser(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def test_an_admin_sees_people(admin_browser: Client) -> None:
    assert admin_browser.get("/settings/people/").status_code == 200


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_member_does_not(browser: Client, method: str) -> None:
    assert getattr(browser, method)("/settings/people/").status_code == 403


def test_the_refusal_says_who_may(browser: Client) -> None:
    answer = browser.post("/servers/add/", {"name": "Mine", "base_url": "http://127.0.0.1:9/v1"})
    assert answer.status_code == 403
    assert "Only admins can change servers." in answer.content.decode()
