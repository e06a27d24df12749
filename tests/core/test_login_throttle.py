"""Guessing passwords."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from apps.core import login_throttle
from apps.core.login_links import create_login_link
from apps.core.redis import sync_redis

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


def test_however_the_name_is_written() -> None:
    guess(5)
    assert log_in(" ALICE ", RIGHT).status_code == 429


def test_who_does_not_exist_is_counted_all_the_same() -> None:
    guess(5, "nobody")
    assert log_in("nobody", RIGHT).status_code == 429


def test_another_person_and_another_address_may_go_on(bob: User) -> None:
    guess(5)
    assert log_in("alice", RIGHT, "10.0.0.2").status_code == 302
    assert log_in("bob", "wrong").status_code == 200


def test_one_address_may_not_try_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_throttle, "TRIES_OF_ADDRESS", 7)
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
    monkeypatch.setattr(login_throttle, "sync_redis", lambda: nowhere)
    assert log_in("alice", RIGHT).status_code == 302


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "a minute"), (60, "a minute"), (61, "2 minutes"), (900, "15 minutes")],
)
def test_the_wait_in_words(seconds: int, words: str) -> None:
    assert login_throttle.wait_in_words(seconds) == words
