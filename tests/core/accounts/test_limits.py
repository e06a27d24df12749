"""Limits of keys, which their owner sets, and of people, which admins set."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.core.models import ApiKey, PersonLimits

pytestmark = pytest.mark.django_db(transaction=True)
NUMBERS = {
    "requests_per_minute": 60,
    "tokens_per_day": 100_000,
    "in_flight": 4,
    "max_tokens": 2000,
}


def form(prefix: str, **values: object) -> dict[str, object]:
    return {f"{prefix}-{name}": value for name, value in values.items()}


def test_a_key_has_limits(browser: Client, alice: User) -> None:
    key, _ = ApiKey.issue(user=alice, name="laptop")
    sent = form(f"key-{key.pk}", **NUMBERS, allowed_models=" qwen \n\nbge\r\nqwen")
    answer = browser.post(f"/settings/keys/{key.pk}/", {"lane": "batch", **sent}, follow=True)
    page = answer.content.decode()
    for text in ("60 requests/min", "100,000 tokens a day", "4 in flight", "2 models"):
        assert text in page
    key.refresh_from_db()
    assert {name: getattr(key, name) for name in NUMBERS} == NUMBERS
    assert (key.lane, key.allowed_models) == ("batch", ["qwen", "bge"])
    browser.post(f"/settings/keys/{key.pk}/", {"lane": "batch"})
    key.refresh_from_db()
    assert key.limit_texts == []


def test_a_new_key_has_limits(browser: Client) -> None:
    wrong = {"name": "laptop", **form("new-key", in_flight=0)}
    told = browser.post("/settings/keys/", wrong, follow=True).content.decode()
    assert "Key not created. Requests in flight: " in told
    assert not ApiKey.objects.exists()
    browser.post("/settings/keys/", {"name": "laptop", **form("new-key", **NUMBERS)})
    key = ApiKey.objects.get()
    assert {name: getattr(key, name) for name in NUMBERS} == NUMBERS
    browser.post("/settings/keys/", {"name": "second"})
    assert ApiKey.objects.get(name="second").limit_texts == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("in_flight", "0", "Requests in flight: "),
        ("requests_per_minute", "1000000", "Requests a minute: "),
        ("allowed_models", "\n".join(map(str, range(51))), "Models: 51 models are more than 50."),
    ],
)
def test_a_wrong_limit_changes_nothing(
    name: str, value: str, told: str, browser: Client, alice: User
) -> None:
    key, _ = ApiKey.issue(user=alice, name="laptop")
    sent = {"lane": "idle", **form(f"key-{key.pk}", **{name: value})}
    answer = browser.post(f"/settings/keys/{key.pk}/", sent, follow=True)
    assert f"Key “laptop” not saved. {told}" in answer.content.decode()
    key.refresh_from_db()
    assert key.lane == "person"


def test_admins_limit_people(browser: Client, alice: User, carol: User) -> None:
    admin = Client()
    admin.force_login(carol)
    address = f"/settings/people/{alice.pk}/limits/"
    sent = form(f"person-{alice.pk}", in_flight=3)
    assert browser.post(address, sent).status_code == 403
    assert not PersonLimits.objects.exists()
    assert "· 3 in flight" in admin.post(address, sent, follow=True).content.decode()
    assert "limited all your keys together: 3 in flight." in (
        browser.get("/settings/").content.decode()
    )
    told = admin.post(address, form(f"person-{alice.pk}", in_flight=-1), follow=True)
    assert "Limits of alice not saved." in told.content.decode()
    assert PersonLimits.objects.get().in_flight == 3
