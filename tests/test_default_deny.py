"""Every page and route, asked by a stranger. New ones are covered the day they are written."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

PUBLIC = {"/health", "/login/", "/login/link/x/"}
KEY_ALONE = "/metrics"  # tests/monitoring/test_metrics.py asks it
SAMPLE = {"int": "1", "str": "x", "slug": "x", "uuid": "0b0f3a4e-0000-4000-8000-000000000000"}


def addresses(resolver: URLResolver, prefix: str = "/") -> Iterator[str]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry, path)
        elif isinstance(entry, URLPattern):
            yield re.sub(
                r"<(?:(\w+):)?\w+>", lambda found: SAMPLE.get(found[1] or "str", "1"), path
            ).rstrip("$")


ADDRESSES = sorted(set(addresses(get_resolver())))


def test_the_walk_finds_the_rooms() -> None:
    for room in ("/chat/", "/classify/", "/generate/", "/servers/", "/api/v1/servers"):
        assert room in ADDRESSES


@pytest.mark.parametrize("address", [a for a in ADDRESSES if a not in {*PUBLIC, KEY_ALONE}])
def test_a_stranger_gets_nothing(address: str, db: None) -> None:
    for method in ("get", "post", "put", "patch", "delete"):
        answer = getattr(Client(), method)(address)
        if address.startswith(("/api/", "/v1/")) and answer.status_code != 302:
            assert answer.status_code in {401, 404, 405}, method
            shape = {"error"} if address.startswith("/v1/") else {"code", "detail", "errors"}
            if answer.status_code == 401:
                assert set(answer.json()) == shape, method
        else:
            assert answer.status_code == 302, method
            assert answer["location"].startswith("/login/"), method


@pytest.mark.parametrize("address", [a for a in ADDRESSES if a not in {*PUBLIC, KEY_ALONE}])
def test_a_post_without_a_csrf_token_is_refused(address: str, alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert browser.post(address).status_code in {401, 403, 404, 405}


def test_fragment_without_a_login_redirects_to_the_login_page(db: None) -> None:
    answer = Client().get("/servers/cards/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login/")


def test_health_says_nothing_else(db: None) -> None:
    assert Client().get("/health").json() == {"status": "ok"}


def test_nothing_may_run_but_our_own_files(browser: Client) -> None:
    policy = browser.get("/settings/")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
