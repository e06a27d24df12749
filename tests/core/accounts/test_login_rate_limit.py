"""Guessing passwords."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from apps.core.accounts import login_rate_limit
from apps.core.accounts.login_links import create_login_link
from apps.runtime.redis import sync_redis

RIGHT = "correct horse"


@pytest.fixture(autouse=True)
def _password(alice: User) -> None:
    alice.set_password(RIGHT)
    alice.save()


def log_in(name: str, password: str, address: str = "10.0.0.1") -> HttpResponse:
    form = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/login/", form)


def guess(times: int, name: str = "alice", **where: str) -> None:
    for _ in range(times):
        assert log_in(name, "wrong", **where).status_code == 200


def test_the_sixth_try_waits_even_with_the_right_password() -> None:
    guess(5)
    answer = log_in("alice", RIGHT)
    assert answer.status_code == 429
    assert b"<strong>15 minutes</strong>" in answer.content
    assert 0 < int(answer["Retry-After"]) <= 15 * 60


def test_login_limit_counts_a_name_in_any_spelling() -> None:
    guess(5)
    assert log_in(" ALICE ", RIGHT).status_code == 429


def test_login_limit_counts_unknown_names() -> None:
    guess(5, "nobody")
    assert log_in("nobody", RIGHT).status_code == 429


def test_another_person_and_another_address_may_go_on(bob: User) -> None:
    guess(5)
    assert log_in("alice", RIGHT, "10.0.0.2").status_code == 302
    assert log_in("bob", "wrong").status_code == 200


def test_one_address_may_not_try_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_rate_limit, "TRIES_OF_ADDRESS", 7)
    for number in range(7):
        guess(1, f"person{number}")
    assert log_in("alice", RIGHT).status_code == 429
    assert log_in("alice", RIGHT, "10.0.0.2").status_code == 302


def test_the_right_password_clears_the_typos() -> None:
    for _ in range(3):
        guess(4)
        assert log_in("alice", RIGHT).status_code == 302


def test_the_wait_ends() -> None:
    guess(5)
    assert log_in("alice", RIGHT).status_code == 429
    for key in sync_redis().keys("login-tries*"):
        assert 0 < sync_redis().ttl(key) <= 15 * 60
        sync_redis().delete(key)
    assert log_in("alice", RIGHT).status_code == 302
    assert all(sync_redis().ttl(key) > 0 for key in sync_redis().keys("login-tries*"))


def test_a_login_link_still_lets_in(alice: User) -> None:
    guess(5)
    assert Client(REMOTE_ADDR="10.0.0.1").post(create_login_link(username="alice")).url == "/"


def test_without_redis_one_can_still_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    from redis import Redis

    nowhere = Redis.from_url("unix:///nowhere.sock")
    monkeypatch.setattr(login_rate_limit, "sync_redis", lambda: nowhere)
    assert log_in("alice", RIGHT).status_code == 302


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "a minute"), (60, "a minute"), (61, "2 minutes"), (900, "15 minutes")],
)
def test_the_wait_in_words(seconds: int, words: str) -> None:
    assert login_rate_limit.wait_in_words(seconds) == words


def test_a_network_of_ipv6_is_one_address() -> None:
    for number in range(5):
        guess(1, address=f"2001:db8:1:2::{number}")
    assert log_in("alice", RIGHT, "2001:db8:1:2:ffff::9").status_code == 429
    assert log_in("alice", RIGHT, "2001:db8:1:3::1").status_code == 302
    guess(5, address="::ffff:10.9.9.9")
    assert log_in("alice", RIGHT, "10.9.9.9").status_code == 429


def test_one_name_is_not_guessed_from_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_rate_limit, "TRIES_OF_NAME", 6)
    assert log_in("alice", RIGHT, "10.2.0.1").status_code == 302  # here alice is known
    for number in range(6):
        guess(1, address=f"10.1.0.{number}")
    assert log_in("alice", RIGHT, "10.1.0.99").status_code == 429
    assert log_in("alice", RIGHT, "10.2.0.1").status_code == 302  # and is not locked out


def test_others_at_an_address_do_not_lock_out_who_is_known_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(login_rate_limit, "TRIES_OF_ADDRESS", 7)
    assert log_in("alice", RIGHT).status_code == 302
    for number in range(7):
        guess(1, f"person{number}")
    assert log_in("nobody", "wrong").status_code == 429
    assert log_in("alice", RIGHT).status_code == 302
    guess(5)
    assert log_in("alice", RIGHT).status_code == 429  # their own tries count
