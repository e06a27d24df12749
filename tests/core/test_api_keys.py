from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.core.models import ApiKey
from apps.core.models.api_keys import forget_cached_keys


def test_command_prints_a_key_that_works(carol: User) -> None:
    out = StringIO()
    call_command("create_api_key", "nightly", user="carol", stdout=out)
    token = out.getvalue().strip()
    answer = Client().get("/api/v1/servers", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert ApiKey.objects.get().last_used is not None


def test_only_the_hash_is_kept(alice: User) -> None:
    key, token = ApiKey.issue(user=alice, name="x")
    assert token.startswith("wb_")
    assert token not in {key.token_hash, key.start, key.name}


def test_settings_page_shows_a_new_key_once(browser: Client) -> None:
    created = browser.post("/settings/keys/", {"name": "laptop"})
    assert b'data-testid="new-key">wb_' in created.content
    assert "no-store" in created["Cache-Control"]
    assert "wb_" not in str(dict(browser.session)), "the session is stored"
    assert b'data-testid="new-key">wb_' not in browser.get("/settings/").content


def test_a_revoked_key_no_longer_works(alice: User, browser: Client) -> None:
    key, token = ApiKey.issue(user=alice, name="x")
    browser.post(f"/settings/keys/{key.pk}/revoke/")
    answer = Client().get("/api/v1/servers", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"


def test_somebody_elses_key_is_not_there(alice: User, bobs_browser: Client) -> None:
    key, _ = ApiKey.issue(user=alice, name="x")
    assert bobs_browser.post(f"/settings/keys/{key.pk}/revoke/").status_code == 404
    assert ApiKey.objects.exists()


def test_the_key_of_an_inactive_user_is_refused(alice: User) -> None:
    _, token = ApiKey.issue(user=alice, name="x")
    User.objects.update(is_active=False)
    answer = Client().get("/api/v1/servers", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 401


def status_of(token: str) -> int:
    return Client().get("/api/v1/servers", headers={"authorization": f"Bearer {token}"}).status_code


def test_user_of_queries_a_key_once_for_many_requests(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _, token = ApiKey.issue(user=alice, name="x")
    assert ApiKey.user_of(token) == alice
    with django_assert_num_queries(0):
        found = ApiKey.user_of(token)
    assert found == alice
    found.username = "changed by one request"
    assert getattr(ApiKey.user_of(token), "username", "") == "alice"


def test_user_of_forgets_a_revoked_key_and_a_disabled_user_at_once(alice: User) -> None:
    key, token = ApiKey.issue(user=alice, name="x")
    _, other = ApiKey.issue(user=alice, name="y")
    assert (status_of(token), status_of(other)) == (200, 200)
    key.delete()
    assert (status_of(token), status_of(other)) == (401, 200)
    alice.is_active = False
    alice.save()
    assert status_of(other) == 401


def test_a_key_that_changes_while_it_is_looked_up_is_not_known(alice: User) -> None:
    _, token = ApiKey.issue(user=alice, name="x")

    def change_after(execute: Callable[..., Any], *arguments: Any) -> Any:
        found = execute(*arguments)
        forget_cached_keys()
        return found

    with connection.execute_wrapper(change_after):
        assert ApiKey.find(token) is not None
    assert ApiKey.find_known(token) is None


def test_user_of_sees_changes_of_other_processes_after_a_while(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.models.api_keys.KEY_CACHE_SECONDS", 0)
    _, token = ApiKey.issue(user=alice, name="x")
    assert status_of(token) == 200
    User.objects.update(is_active=False)
    assert status_of(token) == 401
