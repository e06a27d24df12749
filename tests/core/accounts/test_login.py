from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import F
from django.test import Client, override_settings
from django.utils import timezone

from apps.core.accounts.login_links import create_login_link, startup_path
from apps.core.models import LoginLink


def test_the_first_link_makes_the_admin_and_lets_them_in_once(db: None) -> None:
    link = create_login_link()
    browser = Client()
    assert browser.post(link).status_code == 302
    assert browser.get("/settings/").status_code == 200
    assert User.objects.get().is_superuser
    assert Client().post(link).status_code == 410


def test_looking_at_a_link_does_not_use_it_up(db: None) -> None:
    link = create_login_link()
    assert Client().head(link).status_code == 200
    assert b"data-login" in Client().get(link).content
    assert Client().post(link).status_code == 302


def test_a_start_prints_no_link_for_an_admin_with_a_password(db: None) -> None:
    assert startup_path().startswith("/login/link/")
    admin = User.objects.get()
    admin.set_password("correct horse")
    admin.save()
    assert startup_path() == "/login/"


def test_the_link_of_a_start_is_short_lived(db: None) -> None:
    link = startup_path()
    LoginLink.objects.update(expires=F("expires") - timedelta(minutes=14))
    assert Client().get(link).status_code == 200
    LoginLink.objects.update(expires=F("expires") - timedelta(minutes=2))
    assert Client().get(link).status_code == 410


def test_an_old_link_is_refused(db: None) -> None:
    link = create_login_link()
    LoginLink.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert Client().get(link).status_code == 410
    assert Client().post(link).status_code == 410


def test_a_new_link_ends_the_one_before(db: None) -> None:
    first, second = create_login_link(), create_login_link()
    assert Client().post(first).status_code == 410
    assert Client().post(second).status_code == 302


def test_the_link_is_not_kept_in_the_clear(db: None) -> None:
    token = create_login_link().split("/")[-2]
    assert not LoginLink.objects.filter(token_hash__contains=token).exists()


def test_an_inactive_user_gets_no_link(alice: User) -> None:
    alice.is_active = False
    alice.save()
    with pytest.raises(CommandError, match="no active user alice"):
        call_command("login_link", "alice")


@pytest.mark.parametrize(
    ("origin", "start"),
    [("", "http://127.0.0.1:8000/login/"), ("https://wb.example", "https://wb.example/login/")],
)
def test_the_command_prints_where_people_reach_it(db: None, origin: str, start: str) -> None:
    out = StringIO()
    with override_settings(PUBLIC_ORIGIN=origin):
        call_command("login_link", stdout=out)
    assert out.getvalue().startswith(start)


def test_password(alice: User) -> None:
    alice.set_password("correct horse")
    alice.save()
    browser = Client()
    wrong = browser.post("/login/", {"username": "alice", "password": "wrong"})
    assert b"Wrong username or password." in wrong.content
    right = browser.post("/login/", {"username": "alice", "password": "correct horse"})
    assert right.status_code == 302


def test_the_login_page_does_not_send_people_elsewhere(alice: User) -> None:
    alice.set_password("correct horse")
    alice.save()
    answer = Client().post(
        "/login/", {"username": "alice", "password": "correct horse", "next": "http://evil/"}
    )
    assert answer["location"] == "/"
