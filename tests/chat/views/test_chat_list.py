"""The chat list as fragments: states, menus, actions on a row, projects."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.conversations import projects, services
from apps.chat.models import Conversation, Project, SamplingParams, Status, Tag
from apps.chat.presets import presets
from apps.servers.models import Server
from tests.chat.conftest import told

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.chat.answering.runner.start_answer", lambda answer, sent=None: None)


def from_list(client: Client, name: str, key: int, open_chat: int = 0, **fields: str) -> str:
    """Post as a row of the list does; return the fragment, or the address to go to."""
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver/chat/{open_chat}/"}
    answer = client.post(reverse(f"chat:{name}", args=[key]), fields, headers=headers)
    return str(answer.headers.get("HX-Redirect", "")) or answer.content.decode()


def test_page_of_a_chat_marks_it_as_read(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "q", "a")
    Conversation.objects.update(unread=True)
    states = reverse("chat:states")
    shown = browser.get(states, {"shown": f"{conversation.pk},x"}).content.decode()
    assert 'data-state="unread"' in shown
    assert "data-attention" in shown
    browser.get(reverse("chat:conversation", args=[conversation.pk]))
    shown = browser.get(states, {"shown": conversation.pk}).content.decode()
    assert f'id="state-{conversation.pk}"' in shown
    assert "data-state" not in shown
    assert "data-attention" not in shown
    Conversation.objects.update(unread=True)
    browser.post(reverse("chat:read", args=[conversation.pk]))
    assert not Conversation.objects.get().unread


def test_states_of_others_are_not_shown(alice: User, bobs_browser: Client) -> None:
    conversation = told(alice, "q", "a", status=Status.FAILED)
    shown = bobs_browser.get(reverse("chat:states"), {"shown": conversation.pk}).content.decode()
    assert f"state-{conversation.pk}" not in shown


def test_row_menu_offers_the_actions_of_a_chat(
    alice: User, browser: Client, bobs_browser: Client
) -> None:
    conversation = told(alice, "q", "a")
    project = projects.create(alice, "Invoices")
    address = reverse("chat:menu", args=[conversation.pk])
    html = browser.get(address).content.decode()
    for words in ("Rename", "Pin", "Add tag", "Move to project", "Invoices", "Export", "Delete"):
        assert words in html
    assert f'value="{project.pk}"' in html
    assert bobs_browser.get(address).status_code == 404


def test_actions_in_the_list_render_it_again(alice: User, browser: Client) -> None:
    conversation, other = told(alice, "q", "a"), told(alice, "q", "a")
    html = from_list(browser, "pin", conversation.pk, other.pk)
    assert ">Pinned</h3>" in html
    assert html.count('aria-current="page"') == 1  # the chat that is open
    assert "“Kettles” archived." in from_list(browser, "archive", conversation.pk)
    assert "too long" in from_list(browser, "set_tags", other.pk, tags="x" * 41)
    deleted = from_list(browser, "delete", other.pk)
    assert "“Kettles” deleted." in deleted
    assert "Undo" in deleted
    assert "1 chat restored." in from_list(browser, "undo", other.pk)
    assert "?removed=" in from_list(browser, "delete", other.pk, open_chat=other.pk)


def test_rename_in_the_list_changes_the_row_and_the_open_page(alice: User, browser: Client) -> None:
    conversation = told(alice, "q", "a")
    html = from_list(browser, "rename", conversation.pk, title="Tea", from_list="1")
    assert f'id="listed-{conversation.pk}"' in html
    assert "title-news" not in html
    html = from_list(
        browser, "rename", conversation.pk, conversation.pk, title="Pots", from_list="1"
    )
    assert 'data-title="Pots"' in html


def test_tag_is_a_dot_with_its_name(alice: User, browser: Client) -> None:
    told(alice, "q", "a").tags.add(Tag.objects.create(owner=alice, name="work"))
    html = browser.get(reverse("chat:older_chats")).content.decode()
    assert 'aria-label="Tag: work"' in html


def test_chat_moves_into_a_project_and_out(
    alice: User, bob: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "q", "a")
    project, foreign = projects.create(alice, "Invoices"), projects.create(bob, "Invoices")
    address = reverse("chat:move", args=[conversation.pk])
    assert browser.post(address, {"project": foreign.pk}).status_code == 404
    assert "moved to “Invoices”" in from_list(
        browser, "move", conversation.pk, project=str(project.pk)
    )
    inside = browser.get(reverse("chat:project_chats", args=[project.pk])).content.decode()
    listed = f'id="listed-{conversation.pk}"'
    assert listed in inside
    assert listed not in browser.get(reverse("chat:older_chats")).content.decode()
    # On its own page its project is open in the list.
    page = browser.get(reverse("chat:conversation", args=[conversation.pk])).content.decode()
    assert page.count(listed) == 1
    browser.post(address, {"project": ""})
    assert listed in browser.get(reverse("chat:older_chats")).content.decode()
    bulk = {"id": conversation.pk, "action": "move", "project": project.pk}
    browser.post(reverse("chat:bulk"), bulk)
    assert Conversation.objects.get().project == project


def test_project_page_saves_its_settings_and_new_chats_use_them(
    alice: User, browser: Client, demo_server: Server
) -> None:
    address = reverse("chat:projects")
    assert "Enter a project name." in browser.post(address, {"name": " "}).content.decode()
    made = browser.post(address, {"name": "Invoice  portal"}, follow=True).content.decode()
    assert "Invoice portal" in made
    assert "You already have" in browser.post(address, {"name": "Invoice portal"}).content.decode()
    project = Project.objects.get()
    preset = presets.save(
        owner=alice, name="Cold", server=None, model="", system_prompt=None,
        params=SamplingParams(temperature=0.1),
    )  # fmt: skip
    saved = browser.post(
        reverse("chat:project", args=[project.pk]),
        {
            "name": "Portal",
            "instructions": "Quote the law.",
            "model": f"{demo_server.pk} workbench-demo",
            "preset": preset.pk,
        },
        follow=True,
    )
    assert "Saved." in saved.content.decode()
    page = browser.get(reverse("chat:index"), {"project": project.pk}).content.decode()
    assert f'name="project" value="{project.pk}"' in page
    browser.post(reverse("chat:create"), {"content": "Hi", "project": project.pk})
    begun = Conversation.objects.get()
    assert begun.project == project
    assert begun.system_prompt is not None
    assert begun.system_prompt.text == "Quote the law."
    assert (begun.server, begun.model) == (demo_server, "workbench-demo")
    assert begun.sampling.temperature == 0.1


def test_deleted_project_leaves_its_chats(
    alice: User, browser: Client, bobs_browser: Client, demo_server: Server
) -> None:
    project = projects.create(alice, "P")
    services.open_conversation(owner=alice, title="Kept", project=project)
    address = reverse("chat:delete_project", args=[project.pk])
    assert bobs_browser.post(address).status_code == 404
    assert "Its chats are kept." in browser.post(address, follow=True).content.decode()
    assert Conversation.objects.get().project is None


def test_many_projects_leave_room_for_the_chats(alice: User, browser: Client) -> None:
    made = [projects.create(alice, f"Project {number}") for number in range(8)]
    shown = browser.get(reverse("chat:index")).content.decode()
    assert shown.count('class="list-project"') == len(made)
    assert "2 more projects" in shown
    assert '<details class="list-more">' in shown
    last = browser.get(reverse("chat:project", args=[made[-1].pk])).content.decode()
    assert '<details class="list-more" open>' in last
