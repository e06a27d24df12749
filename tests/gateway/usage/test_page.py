"""The page “Usage” and its CSV file."""

import csv
import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.gateway.models import Usage
from apps.gateway.usage.counters import COUNTED, TAKEN
from apps.gateway.usage.summary import Figures
from apps.runtime.redis import sync_redis

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def no_counts() -> None:
    sync_redis().delete(COUNTED, TAKEN)


def used(user: User, key: str, model: str = "qwen", *, days_ago: int = 0, **numbers: int) -> None:
    Usage.objects.create(
        day=timezone.localdate() - timedelta(days=days_ago),
        user=user,
        key_id=sum(map(ord, key)),
        key_name=key,
        model=model,
        **{"requests": 1, **numbers},
    )


def page(client: Client, query: str = "") -> str:
    answer = client.get(f"/servers/usage/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_person_sees_their_own_and_an_admin_all(
    browser: Client, alice: User, bob: User, carol: User
) -> None:
    staff_browser = Client()
    staff_browser.force_login(carol)
    used(alice, "laptop")
    used(bob, "=secret")
    assert "laptop" in (own := page(browser, "?by=key"))
    assert "secret" not in own
    assert "secret" not in page(browser, f"?by=key&person={bob.pk}")
    assert "secret" not in page(browser, "?by=person")
    for query in ("?by=key", f"?by=key&person={bob.pk}"):
        assert "secret" in page(staff_browser, query)
    assert b"secret" not in b"".join(browser.get("/servers/usage.csv"))


def test_what_is_not_reported_is_a_dash(browser: Client, alice: User) -> None:
    used(alice, "laptop", requests=2, cancelled=2)
    text = page(browser, "?by=model")
    assert text.count("<td>–</td>") == 2 * 4  # of the model and of the total
    assert "not reported" in text
    used(alice, "other", prompt=1234, prompt_reports=1)
    assert "<td>1,234</td>" in page(browser)


def test_choices_narrow_what_is_shown(browser: Client, alice: User) -> None:
    used(alice, "laptop", "qwen", prompt=11, prompt_reports=1)
    used(alice, "agent", "gemma", prompt=22, prompt_reports=1, days_ago=20)
    assert "<td>33</td>" in page(browser)
    assert "<td>33</td>" not in page(browser, "?span=week")
    assert "<td>22</td>" in page(browser, "?model=gemma")
    key = sum(map(ord, "agent"))
    assert "<td>11</td>" not in page(browser, f"?key={key}")
    assert "No matching requests" in page(browser, "?model=none")
    assert "<td>33</td>" in page(browser, "?key=x&span=x&by=x&person=")


def test_csv_has_a_row_for_each_day_key_and_model(browser: Client, alice: User) -> None:
    used(alice, "=laptop", requests=2, waits=2, waited_ms=3000, prompt=5, prompt_reports=2)
    answer = browser.get("/servers/usage.csv?span=week")
    assert "usage-" in answer["Content-Disposition"]
    text = b"".join(answer).decode("utf-8-sig")  # type: ignore[arg-type]
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["person"], row["key"], row["requests"]) == ("alice", "'=laptop", "2")
    assert (row["tokens_in"], row["tokens_out"], row["average_wait_s"]) == ("5", "", "1.5")


def test_nothing_yet(browser: Client) -> None:
    assert "No requests in this time" in page(browser)


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({"in": 2.0, "cached": 0.5, "out": 4.0}, 2.0 * 0.75 + 0.5 * 0.25 + 4.0 * 0.5),
        ({"in": 2.0, "out": 4.0}, 4.0),
        ({"out": 4.0}, 2.0),
        ({}, None),
    ],
)
def test_cost_of_tokens(prices: dict[str, float], cost: float | None) -> None:
    figures = Figures(prompt=1_000_000, cached=250_000, completion=500_000)
    assert figures.cost(prices) == cost
    assert Figures(requests=1).cost(prices) is None


def test_page_has_the_cost_where_prices_are_set(
    browser: Client, alice: User, settings: Settings
) -> None:
    used(alice, "laptop", prompt=1_000_000, prompt_reports=1)
    assert "Cost" not in page(browser)
    settings.TOKEN_PRICES, settings.CURRENCY = {"in": 0.155}, "CHF"
    text = page(browser)
    assert "Cost, CHF" in text
    assert text.count("<td>0.15</td>") == 2  # of the day and of the total
    exported = b"".join(browser.get("/servers/usage.csv")).decode()  # type: ignore[arg-type]
    assert exported.strip().endswith(",0.155")
