"""Pages of one's own account: name, password and API keys."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from apps.core.models import ApiKey

pytestmark = pytest.mark.django_db(transaction=True)


def test_settings_page_lists_own_keys_alone(browser: Client, alice: User, bob: User) -> None:
    ApiKey.issue(user=alice, name="nightly import")
    ApiKey.issue(user=bob, name="someone else's")
    page = browser.get("/settings/").content.decode()
    assert "nightly import" in page
    assert "someone else" not in page


def test_settings_page_is_not_cached(browser: Client) -> None:
    assert "no-store" in browser.get("/settings/").headers["Cache-Control"]


def test_create_key_shows_a_working_token_once(browser: Client, alice: User) -> None:
    answer = browser.post("/settings/keys/", {"name": "  nightly  "})
    key = ApiKey.objects.get()
    assert key.name == "nightly"
    found = re.search(r"wb_[\w-]{43}", answer.content.decode())
    assert found is not None
    token = found[0]
    assert ApiKey.user_of(token) == alice
    assert token not in browser.get("/settings/").content.decode()


def test_create_key_wants_a_name(browser: Client) -> None:
    page = browser.post("/settings/keys/", {"name": "  "}, follow=True).content.decode()
    assert "Enter a name" in page
    assert not ApiKey.objects.exists()


def test_create_key_cuts_a_long_name(browser: Client) -> None:
    browser.post("/settings/keys/", {"name": "n" * 300})
    assert ApiKey.objects.get().name == "n" * 100


def test_create_key_stops_at_the_limit(browser: Client, settings: Settings) -> None:
    settings.LIMITS = settings.LIMITS | {"keys": 1}
    browser.raise_request_exception = False
    assert browser.post("/settings/keys/", {"name": "first"}).status_code == 200
    assert browser.post("/settings/keys/", {"name": "second"}).status_code == 429
    assert ApiKey.objects.count() == 1


def test_revoke_key_ends_it_at_once(browser: Client, alice: User) -> None:
    key, token = ApiKey.issue(user=alice, name="old")
    assert ApiKey.user_of(token) == alice
    page = browser.post(f"/settings/keys/{key.pk}/revoke/", follow=True).content.decode()
    assert "Key “old” revoked" in page
    assert ApiKey.user_of(token) is None


def test_revoke_key_of_someone_else_is_not_found(browser: Client, bob: User) -> None:
    key, token = ApiKey.issue(user=bob, name="theirs")
    assert browser.post(f"/settings/keys/{key.pk}/revoke/").status_code == 404
    assert ApiKey.user_of(token) == bob


def test_rename_changes_the_name(browser: Client, alice: User) -> None:
    page = browser.post("/settings/name/", {"username": "alicia"}, follow=True).content.decode()
    assert "Your name is now “alicia”." in page
    alice.refresh_from_db()
    assert alice.username == "alicia"


@pytest.mark.parametrize("name", ["", "bob", "x" * 151])
def test_rename_refuses_a_bad_name(browser: Client, alice: User, bob: User, name: str) -> None:
    answer = browser.post("/settings/name/", {"username": name})
    assert answer.status_code == 422
    alice.refresh_from_db()
    assert alice.username == "alice"


def test_change_password_refuses_two_that_differ(browser: Client, alice: User) -> None:
    form = {"new_password1": "correct horse", "new_password2": "battery staple"}
    assert browser.post("/settings/password/", form).status_code == 422
    alice.refresh_from_db()
    assert not alice.check_password("correct horse")


@pytest.mark.parametrize(
    "path",
    ["/settings/name/", "/settings/password/", "/settings/keys/", "/settings/keys/1/revoke/"],
)
def test_account_actions_refuse_get(browser: Client, path: str) -> None:
    assert browser.get(path).status_code == 405


@pytest.mark.parametrize("path", ["/settings/", "/settings/people/"])
def test_without_a_login_pages_lead_to_it(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/")
