"""Pages of admins about people: links, roles, disabling and removal."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from apps.core.models import LoginLink, Removal

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def test_link_is_shown_with_the_public_address(
    admin: Client, bob: User, settings: Settings
) -> None:
    settings.PUBLIC_ORIGIN = "https://workbench.example"
    page = admin.post(f"/settings/people/{bob.pk}/link/").content.decode()
    assert "https://workbench.example/login/link/" in page
    assert LoginLink.objects.waiting().filter(user=bob).count() == 1


def test_link_of_a_disabled_person_is_refused(admin: Client, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert admin.post(f"/settings/people/{bob.pk}/link/").status_code == 404


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ("admin", "bob is now an admin."),
        ("member", "bob is now a member."),
        ("disable", "bob can no longer log in."),
        ("enable", "bob can log in again."),
    ],
)
def test_change_reports_what_was_done(admin: Client, bob: User, action: str, sentence: str) -> None:
    page = admin.post(f"/settings/people/{bob.pk}/{action}/", follow=True).content.decode()
    assert sentence in page


def test_remove_asks_for_the_name_first(admin: Client, bob: User) -> None:
    page = admin.get(f"/settings/people/{bob.pk}/remove/").content.decode()
    assert "bob" in page
    answer = admin.post(f"/settings/people/{bob.pk}/remove/", {"name": "bobby"})
    assert answer.status_code == 422
    assert "Type “bob” to confirm." in answer.content.decode()
    assert not Removal.objects.exists()


def test_remove_of_oneself_is_refused(admin: Client, carol: User) -> None:
    path = f"/settings/people/{carol.pk}/remove/"
    page = admin.post(path, {"name": "carol"}, follow=True).content.decode()
    assert "You cannot remove yourself." in page
    assert User.objects.filter(pk=carol.pk).exists()


@pytest.mark.parametrize("action", ["link", "admin", "member", "disable", "enable"])
def test_people_actions_refuse_get(admin: Client, bob: User, action: str) -> None:
    assert admin.get(f"/settings/people/{bob.pk}/{action}/").status_code == 405


@pytest.mark.parametrize("action", ["link", "admin", "member", "disable", "enable", "remove"])
def test_members_are_refused(browser: Client, bob: User, action: str) -> None:
    assert browser.post(f"/settings/people/{bob.pk}/{action}/").status_code == 403


@pytest.mark.parametrize("action", ["link", "admin", "disable", "remove"])
def test_unknown_people_are_not_found(admin: Client, action: str) -> None:
    assert admin.post(f"/settings/people/999999/{action}/").status_code == 404
