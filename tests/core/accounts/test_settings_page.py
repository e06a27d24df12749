"""The settings page: appearance, devices, and keys with access and a lifetime."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from apps.core.accounts.devices import name_of
from apps.core.models import RESTORABLE, ApiKey, Appearance, Device, KeyLane, KeyScope

pytestmark = pytest.mark.django_db(transaction=True)
STATIC = Path(__file__).parents[3] / "static"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1"
EDGE = "Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0"


def signed_in(name: str, user_agent: str) -> Client:
    client = Client(headers={"user-agent": user_agent})
    client.post("/login/", {"username": name, "password": "correct horse"})
    return client


@pytest.fixture
def alice_with_password(alice: User) -> User:
    alice.set_password("correct horse")
    alice.save()
    return alice


def test_theme_is_written_into_every_page_by_the_server(browser: Client, alice: User) -> None:
    assert "data-theme" not in browser.get("/settings/").content.decode()
    saved = browser.post("/settings/appearance/", {"theme": "dark"}, headers={"hx-request": "true"})
    assert saved.content == b"Saved"
    for page in ("/settings/", "/chat/"):
        assert 'data-theme="dark"' in browser.get(page).content.decode()


def test_appearance_saves_one_value_and_keeps_the_others(browser: Client, alice: User) -> None:
    browser.post("/settings/appearance/", {"theme": "light"})
    browser.post("/settings/appearance/", {"density": "compact"})
    found = Appearance.objects.get(user=alice)
    assert (found.theme, found.density, found.text_size) == ("light", "compact", "normal")


def test_appearance_refuses_an_unknown_value(browser: Client, alice: User) -> None:
    assert browser.post("/settings/appearance/", {"theme": "pink"}).status_code == 400
    assert Appearance.objects.get(user=alice).theme == "system"


def test_other_devices_are_listed_and_signed_out(alice_with_password: User) -> None:
    here, there = signed_in("alice", FIREFOX), signed_in("alice", IPHONE)
    page = here.get("/settings/").content.decode()
    assert "This browser (Firefox on Linux)" in page
    assert "Safari on iPhone" in page
    here.post("/settings/devices/sign-out/")
    assert there.get("/settings/").status_code == 302
    assert here.get("/settings/").status_code == 200
    assert "Safari on iPhone" not in here.get("/settings/").content.decode()


def test_sign_out_forgets_the_device(alice_with_password: User) -> None:
    signed_in("alice", EDGE).post("/logout/")
    assert not Device.objects.exists()


def test_changed_password_keeps_this_device_alone(alice_with_password: User) -> None:
    here, there = signed_in("alice", FIREFOX), signed_in("alice", EDGE)
    new = {"new_password1": "battery staple", "new_password2": "battery staple"}
    here.post("/settings/password/", new | {"old_password": "correct horse"})
    assert there.get("/settings/").status_code == 302
    assert here.get("/settings/").status_code == 200
    assert [device.user_agent for device in Device.objects.all()] == [FIREFOX]


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (EDGE, "Edge on Windows"),
        (IPHONE, "Safari on iPhone"),
        ("curl/8.9", "Unknown browser"),
    ],
)
def test_name_of_says_browser_and_system(user_agent: str, name: str) -> None:
    assert name_of(user_agent) == name


def test_create_key_with_access_and_lifetime(browser: Client, alice: User) -> None:
    browser.post("/settings/keys/", {"name": "Grafana", "scope": "read", "days": "30"})
    key = ApiKey.objects.get()
    assert key.scope == KeyScope.READ
    assert key.expires is not None
    assert timedelta(days=29) < key.expires - timezone.now() <= timedelta(days=30)
    page = browser.get("/settings/").content.decode()
    assert "Read only" in page
    assert "never used" in page


@pytest.mark.parametrize(
    "wrong", [{"scope": "all"}, {"lane": "first"}, {"days": "31"}, {"days": "x"}]
)
def test_create_key_refuses_unknown_choices(browser: Client, wrong: dict[str, str]) -> None:
    page = browser.post("/settings/keys/", {"name": "x"} | wrong, follow=True).content.decode()
    assert "Choose access, priority and lifetime" in page
    assert not ApiKey.objects.exists()


def test_priority_of_a_key_is_chosen_and_changed(browser: Client, alice: User) -> None:
    browser.post("/settings/keys/", {"name": "agent", "lane": "batch"})
    key = ApiKey.objects.get()
    assert key.lane == KeyLane.BATCH
    for lane, kept in (("idle", "idle"), ("first", "idle"), ("person", "person")):
        browser.post(f"/settings/keys/{key.pk}/", {"lane": lane})
        key.refresh_from_db()
        assert key.lane == kept


def test_key_of_someone_else_cannot_be_edited(browser: Client, bob: User) -> None:
    key, _ = ApiKey.issue(user=bob, name="theirs")
    assert browser.post(f"/settings/keys/{key.pk}/", {"lane": "idle"}).status_code == 404


def test_read_only_key_may_read_and_nothing_else(alice: User) -> None:
    _, token = ApiKey.issue(user=alice, name="Grafana", scope=KeyScope.READ)
    program = Client(headers={"authorization": f"Bearer {token}"})
    assert program.get("/api/v1/conversations").status_code == 200
    answer = program.post("/api/v1/conversations", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "read_only_key")
    assert "Grafana" in answer.json()["detail"]


def test_expired_key_no_longer_works_and_is_listed(browser: Client, alice: User) -> None:
    past = timezone.now() - timedelta(minutes=1)
    _, token = ApiKey.issue(user=alice, name="old", expires=past)
    assert ApiKey.user_of(token) is None
    assert "expired" in browser.get("/settings/").content.decode()


def test_revoked_key_can_be_restored_for_an_hour(browser: Client, alice: User) -> None:
    key, token = ApiKey.issue(user=alice, name="laptop")
    browser.post(f"/settings/keys/{key.pk}/revoke/")
    assert ApiKey.user_of(token) is None
    browser.post(f"/settings/keys/{key.pk}/restore/")
    assert ApiKey.user_of(token) == alice
    key.revoke()
    ApiKey.objects.update(revoked=timezone.now() - RESTORABLE)
    assert browser.post(f"/settings/keys/{key.pk}/restore/").status_code == 404


def test_revoked_keys_are_deleted_once_they_cannot_be_restored(alice: User) -> None:
    old, _ = ApiKey.issue(user=alice, name="old")
    old.revoke()
    ApiKey.objects.update(revoked=timezone.now() - 2 * RESTORABLE)
    key, _ = ApiKey.issue(user=alice, name="new")
    key.revoke()
    assert [key.name for key in ApiKey.objects.all()] == ["new"]


def test_restore_key_of_someone_else_is_not_found(browser: Client, bob: User) -> None:
    key, token = ApiKey.issue(user=bob, name="theirs")
    key.revoke()
    assert browser.post(f"/settings/keys/{key.pk}/restore/").status_code == 404
    assert ApiKey.user_of(token) is None


def test_people_are_for_admins(browser: Client, carol: User) -> None:
    assert 'id="people"' not in browser.get("/settings/").content.decode()
    admin = Client()
    admin.force_login(carol)
    page = admin.get("/settings/").content.decode()
    assert 'id="people"' in page
    assert 'data-at="people"' in admin.get("/settings/people/").content.decode()


def test_every_section_has_an_address(browser: Client) -> None:
    page = browser.get("/settings/").content.decode()
    for name in (
        "account",
        "appearance",
        "chat-defaults",
        "prompts",
        "reading-ahead",
        "data",
        "keys",
    ):
        assert f'href="#{name}"' in page
        assert f'<section id="{name}"' in page


def test_manifest_names_icons_that_exist(browser: Client) -> None:
    page = browser.get("/settings/").content.decode()
    assert 'rel="manifest" href="/static/manifest.webmanifest"' in page
    manifest = json.loads((STATIC / "manifest.webmanifest").read_text(encoding="utf-8"))
    sizes = {(icon["sizes"], icon.get("purpose", "any")) for icon in manifest["icons"]}
    assert sizes == {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")}
    assert all((STATIC / icon["src"]).is_file() for icon in manifest["icons"])
