"""Inviting, disabling and removing people, and what they change of themselves."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import QuerySet
from django.test import Client

from apps.chat.models import Conversation, Preset, SystemPrompt
from apps.core.accounts import people, removal
from apps.core.models import ApiKey, LoginLink, Removal
from apps.core.tasks import remove_people, remove_person
from apps.datasets.models import Dataset, Example
from tests.markup import visible_text

PASSWORD = "correct horse battery"


@pytest.fixture
def admin(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def link_in(page: bytes) -> str:
    found = re.search(rb'data-testid="link">([^<]+)<', page)
    assert found is not None, page.decode()
    return found[1].decode()


def path_of(link: str) -> str:
    assert link.startswith("http://testserver/")
    return link.removeprefix("http://testserver")


def test_who_is_invited_chooses_a_password_and_is_a_plain_member(admin: Client) -> None:
    invited = admin.post("/settings/people/", {"username": "dave", "role": "member"})
    link = path_of(link_in(invited.content))
    assert "no-store" in invited["Cache-Control"]

    browser = Client()
    assert b"dave" in browser.get(link).content
    chosen = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    assert browser.post(link, chosen)["location"] == "/"
    assert browser.get("/settings/").status_code == 200
    assert browser.get("/settings/people/").status_code == 403
    dave = User.objects.get(username="dave")
    assert not dave.is_staff
    assert not dave.is_superuser
    assert Client().post("/login/", {"username": "dave", "password": PASSWORD}).status_code == 302
    assert Client().post(link, chosen).status_code == 410, "it works once"


def test_an_invitation_does_not_let_in_without_a_good_password(admin: Client) -> None:
    invited = admin.post("/settings/people/", {"username": "dave", "role": "member"})
    link = path_of(link_in(invited.content))
    for wrong in ({}, {"new_password1": "12345678", "new_password2": "12345678"}):
        browser = Client()
        assert browser.post(link, wrong).status_code == 422
        assert browser.get("/settings/").status_code == 302
    assert Client().get(link).status_code == 200, "it was not used up"


def test_a_name_that_is_taken_is_refused_at_the_field(admin: Client, alice: User) -> None:
    answer = admin.post("/settings/people/", {"username": "alice", "role": "member"})
    assert answer.status_code == 422
    assert b"already exists" in answer.content
    assert not LoginLink.objects.exists()


def test_only_admins_come_to_the_people_page(browser: Client, bob: User) -> None:
    for method in (browser.get, browser.post):
        assert method("/settings/people/").status_code == 403
    for what in ("link", "remove", "admin", "member", "enable", "disable"):
        assert browser.post(f"/settings/people/{bob.pk}/{what}/").status_code == 403
    bob.refresh_from_db()
    assert bob.is_active
    assert not bob.is_staff
    assert b"/settings/people/" not in browser.get("/settings/").content


def test_a_disabled_person_is_out_at_once(admin: Client, browser: Client, alice: User) -> None:
    _, token = ApiKey.issue(user=alice, name="x")
    program = Client(headers={"authorization": f"Bearer {token}"})
    link = people.new_link(alice)
    assert program.get("/api/v1/servers").status_code == 200

    admin.post(f"/settings/people/{alice.pk}/disable/")
    assert browser.get("/settings/").status_code == 302
    assert program.get("/api/v1/servers").status_code == 401
    assert Client().get(link).status_code == 410

    admin.post(f"/settings/people/{alice.pk}/enable/")
    assert browser.get("/settings/").status_code == 200


@pytest.mark.parametrize("what", ["member", "disable", "remove"])
def test_an_admin_is_always_left(admin: Client, carol: User, what: str) -> None:
    answer = admin.post(f"/settings/people/{carol.pk}/{what}/", {"name": "carol"}, follow=True)
    assert b"Ask another admin." in answer.content
    carol.refresh_from_db()
    assert carol.is_active
    assert carol.is_staff
    assert not Removal.objects.exists()


def test_a_member_becomes_an_admin_and_a_member_again(admin: Client, alice: User) -> None:
    admin.post(f"/settings/people/{alice.pk}/admin/")
    alice.refresh_from_db()
    assert alice.is_staff
    admin.post(f"/settings/people/{alice.pk}/member/")
    alice.refresh_from_db()
    assert not alice.is_staff


def test_every_action_names_the_person_it_is_about(admin: Client, alice: User, bob: User) -> None:
    page = admin.get("/settings/people/").content.decode()
    _, _, listed = page.partition('id="people"')
    spoken = re.findall(
        r'<(?:button|a) class="menu-item[^>]*>(.*?)</(?:button|a)>', listed, re.DOTALL
    )
    names = [visible_text(one) for one in spoken]
    assert len(names) >= 8
    assert len(set(names)) == len(names)
    assert all(alice.username in name or bob.username in name for name in names)


def test_removing_asks_for_the_name(admin: Client, alice: User) -> None:
    page = admin.get(f"/settings/people/{alice.pk}/remove/").content.decode()
    assert "cannot be undone" in visible_text(page)
    wrong = admin.post(f"/settings/people/{alice.pk}/remove/", {"name": "alic"})
    assert wrong.status_code == 422
    assert not Removal.objects.exists()


def test_a_removed_person_is_locked_out_and_deleted_with_all_they_had(
    admin: Client, browser: Client, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "PIECE_ROWS", 2)
    for owner in (alice, bob):
        dataset = Dataset.objects.create(owner=owner, name="Tickets")
        Example.objects.bulk_create(
            Example(dataset=dataset, index=n, text=f"row {n}", label="a") for n in range(5)
        )
        prompt = SystemPrompt.objects.create(owner=owner, name="Short", text="Be short.")
        Preset.objects.create(owner=owner, name="Terse", system_prompt=prompt)
        Conversation.objects.create(owner=owner, title="Tea", system_prompt=prompt)
    monkeypatch.setattr(remove_person, "delay", lambda pk: None)  # a message that was lost

    admin.post(f"/settings/people/{alice.pk}/remove/", {"name": "alice"})
    assert browser.get("/settings/").status_code == 302
    assert b"Being deleted" in admin.get("/settings/people/").content

    remove_people()
    assert not User.objects.filter(pk=alice.pk).exists()
    assert Example.objects.count() == 5
    assert set(Conversation.objects.values_list("owner", flat=True)) == {bob.pk}
    remove_person(alice.pk)  # a message that came twice


def test_a_removal_that_broke_off_is_finished(
    alice: User, carol: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    Conversation.objects.create(owner=alice, title="Tea")
    people.remove(alice, by=carol)
    real = QuerySet.delete

    def delete(rows: QuerySet[Any]) -> Any:
        if rows.model is User:
            raise OperationalError("database is locked")
        return real(rows)

    monkeypatch.setattr(QuerySet, "delete", delete)
    with pytest.raises(OperationalError):
        remove_people()
    assert not Conversation.objects.filter(owner=alice).exists(), "it had begun"
    monkeypatch.setattr(QuerySet, "delete", real)
    remove_people()
    assert not User.objects.filter(pk=alice.pk).exists()


def test_no_transaction_of_a_removal_is_large(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "PIECE_ROWS", 2)
    dataset = Dataset.objects.create(owner=alice, name="Tickets")
    Example.objects.bulk_create(
        Example(dataset=dataset, index=n, text=f"row {n}", label="a") for n in range(9)
    )
    deleted: list[int] = []
    real = QuerySet.delete

    def delete(rows: QuerySet[Any]) -> Any:
        found = real(rows)
        deleted.append(found[0])
        return found

    monkeypatch.setattr(QuerySet, "delete", delete)
    removal.remove_now(alice)
    assert len(deleted) > 5
    assert max(deleted) <= 2


def test_nobody_is_deleted_whose_removal_was_not_asked_for(alice: User) -> None:
    remove_person(alice.pk)
    assert User.objects.filter(pk=alice.pk).exists()


def test_people_change_their_name(browser: Client, alice: User, bob: User) -> None:
    taken = browser.post("/settings/name/", {"username": "bob"})
    assert (taken.status_code, b"already exists" in taken.content) == (422, True)
    browser.post("/settings/name/", {"username": "alicia"})
    alice.refresh_from_db()
    assert alice.username == "alicia"


def test_a_new_password_ends_the_other_sessions(alice: User) -> None:
    alice.set_password("old horse battery")
    alice.save()
    here, there = Client(), Client()
    for browser in (here, there):
        browser.post("/login/", {"username": "alice", "password": "old horse battery"})
    new = {"new_password1": PASSWORD, "new_password2": PASSWORD}

    assert here.post("/settings/password/", {"old_password": "wrong"} | new).status_code == 422
    assert there.get("/settings/").status_code == 200
    here.post("/settings/password/", {"old_password": "old horse battery"} | new)
    assert here.get("/settings/").status_code == 200
    assert there.get("/settings/").status_code == 302


def test_who_has_no_password_sets_one(browser: Client, alice: User) -> None:
    alice.set_unusable_password()
    alice.save()
    browser.force_login(alice)
    assert b"Set password" in browser.get("/settings/").content
    browser.post("/settings/password/", {"new_password1": PASSWORD, "new_password2": PASSWORD})
    assert Client().post("/login/", {"username": "alice", "password": PASSWORD}).status_code == 302
