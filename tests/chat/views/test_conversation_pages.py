"""Starting, renaming, asking and sharing on the pages of a chat: works, bad input, others."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.chat.composer.drafts import draft_of
from apps.chat.conversations import branches, services, sharing
from apps.chat.models import (
    TITLE_LENGTH,
    Conversation,
    Message,
    Preset,
    Role,
    SamplingParams,
    Share,
    Status,
    SystemPrompt,
)
from apps.chat.presets import presets, system_prompts
from apps.servers.models import Server
from tests.chat.conftest import told

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Answers that would be generated. Nothing is: no page of this file needs their text."""
    found: list[int] = []
    monkeypatch.setattr(
        "apps.chat.answering.runner.start_answer", lambda answer, sent=None: found.append(answer.pk)
    )
    return found


def create(client: Client, **fields: Any) -> Any:
    return client.post(reverse("chat:create"), fields)


def test_start_takes_the_settings_of_the_draft(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    prompt = system_prompts.save_system_prompt(owner=alice, name="Short", text="Be short.")
    preset = presets.save(
        owner=alice, name="Cold", server=demo_server, model="workbench-demo", system_prompt=prompt,
        params=SamplingParams(temperature=0.1),
    )  # fmt: skip
    presets.apply(preset, draft_of(alice))
    begun = create(browser, content=" Hello\nthere ")
    conversation = Conversation.objects.get()
    assert begun.headers["location"] == reverse("chat:conversation", args=[conversation.pk])
    assert (conversation.server, conversation.model) == (demo_server, "workbench-demo")
    assert (conversation.params, conversation.system_prompt) == ({"temperature": 0.1}, prompt)
    assert conversation.preset == preset
    assert conversation.title == "Hello"
    assert started == [conversation.active_leaf_id]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"content": " \n"}, "The message is empty."),
        ({"content": "x" * (services.MAX_CHARACTERS + 1)}, "The limit is 400,000."),
        ({"content": "Hello", "attachment": "999"}, "File 999 is not there"),
    ],
)
def test_a_refused_start_leaves_nothing_behind(
    browser: Client, demo_server: Server, fields: dict[str, str], sentence: str
) -> None:
    refused = browser.post(reverse("chat:create"), fields, follow=True)
    assert refused.redirect_chain == [(reverse("chat:index"), 302)]
    assert sentence in refused.content.decode()
    assert not Conversation.objects.exists()


def test_send_message_adds_a_question_and_an_answer(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    conversation = told(alice, "Hello", "Hi")
    sent = browser.post(
        reverse("chat:send_message", args=[conversation.pk]),
        {"content": "And tea?", "after": str(conversation.active_leaf_id)},
    )
    assert sent.status_code == 200
    assert "And tea?" in sent.content.decode()
    question = conversation.messages.get(content="And tea?")
    assert question.parent_id == conversation.active_leaf_id
    assert started == [conversation.messages.latest("pk").pk]


def test_a_page_that_is_behind_asks_nothing(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    conversation = told(alice, "Hello", "Hi")
    behind = browser.post(
        reverse("chat:send_message", args=[conversation.pk]), {"content": "x", "after": "1"}
    )
    assert (behind.status_code, started) == (409, [])
    assert behind.headers["HX-Retarget"] == "#thread"
    assert conversation.messages.count() == 2


def test_an_answer_being_written_blocks_the_next_question(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "Hello", "", status=Status.QUEUED)
    refused = browser.post(
        reverse("chat:send_message", args=[conversation.pk]), {"content": "And?"}
    )
    assert refused.status_code == 422
    assert "still being generated" in refused.content.decode()


@pytest.mark.parametrize(
    ("typed", "title"), [("Tea", "Tea"), ("  ", "Kettles"), ("x" * 900, "x" * TITLE_LENGTH)]
)
def test_rename(alice: User, browser: Client, typed: str, title: str) -> None:
    conversation = told(alice, "q", "a")
    renamed = browser.post(reverse("chat:rename", args=[conversation.pk]), {"title": typed})
    assert renamed.status_code == 200
    conversation.refresh_from_db()
    assert conversation.title == title


def test_regenerate_starts_a_sibling(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    first = told(alice, "q", "a").active_leaf
    assert first is not None
    assert browser.post(reverse("chat:regenerate", args=[first.pk])).status_code == 200
    (sibling,) = Message.objects.filter(pk__in=started)
    assert (sibling.parent_id, sibling.status) == (first.parent_id, Status.QUEUED)
    refused = browser.post(reverse("chat:regenerate", args=[sibling.pk]))
    assert refused.status_code == 422
    assert "still being generated" in refused.content.decode()


def test_stop_leaves_a_finished_answer_as_it_is(alice: User, browser: Client) -> None:
    answer = told(alice, "q", "a").active_leaf
    assert answer is not None
    assert browser.post(reverse("chat:stop", args=[answer.pk])).status_code == 204
    answer.refresh_from_db()
    assert (answer.status, answer.content) == (Status.COMPLETE, "a")


def test_a_question_without_an_answer_is_answered_once(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    question = told(alice, "Hello").messages.get()
    address = reverse("chat:answer_message", args=[question.pk])
    assert browser.post(address).status_code == 200
    answer = Message.objects.get(pk=started[0])
    assert (answer.parent_id, answer.role) == (question.pk, Role.ASSISTANT)


def test_continue_starts_with_the_text_that_is_there(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    stopped = told(alice, "q", "Half of", status=Status.STOPPED).active_leaf
    assert stopped is not None
    assert browser.post(reverse("chat:continue_answer", args=[stopped.pk])).status_code == 200
    answer = Message.objects.get(pk=started[0])
    assert answer.answer_request.continues == stopped.pk


def test_restore_is_for_deleted_messages_alone(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "q", "a", "b", "c")
    last = conversation.messages.get(content="b")
    address = reverse("chat:restore_message", args=[last.pk])
    assert browser.post(address).status_code == 404
    branches.delete(last)
    assert browser.post(address).status_code == 200
    assert conversation.messages.filter(deleted_at=None).count() == 4


def test_export_of_training_data_needs_an_answer(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "Hello")
    refused = browser.get(reverse("chat:export", args=[conversation.pk, "jsonl"]), follow=True)
    assert "no training data to export" in refused.content.decode()


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "Choose a file first."),
        ({"file": SimpleUploadedFile("a.json", b"{")}, "Nothing was imported."),
        ({"file": SimpleUploadedFile("a.json", b"[1]")}, "Nothing was imported."),
    ],
)
def test_import_refuses_with_a_sentence(
    browser: Client, demo_server: Server, files: Any, sentence: str
) -> None:
    refused = browser.post(reverse("chat:import"), files)
    assert refused.status_code == 422
    assert sentence in refused.content.decode()
    assert not Conversation.objects.exists()


def test_share_of_an_empty_chat_is_refused(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = services.open_conversation(owner=alice)
    refused = browser.post(reverse("chat:share", args=[conversation.pk]), follow=True)
    assert "nothing to share yet" in refused.content.decode()
    assert not Share.objects.exists()


def test_only_its_owner_stops_a_share(alice: User, bobs_browser: Client, browser: Client) -> None:
    share = sharing.share(alice, told(alice, "q", "a"))
    address = reverse("chat:unshare", args=[share.token])
    assert bobs_browser.post(address).status_code == 404
    stopped = browser.post(address)
    assert stopped.headers["location"] == reverse("chat:conversation", args=[share.conversation_id])
    assert browser.get(reverse("chat:shared", args=[share.token])).status_code == 404


def test_a_copy_does_not_change_with_its_chat(alice: User) -> None:
    conversation = told(alice, "q", "First", reasoning="Hm")
    share = sharing.share(alice, conversation)
    conversation.messages.update(content="Changed")
    share.refresh_from_db()
    assert [one["content"] for one in share.messages] == ["q", "First"]
    assert share.messages[1]["reasoning"] == "Hm"


def test_preset_without_a_name_is_refused(alice: User, browser: Client) -> None:
    conversation = told(alice, "q", "a")
    address = reverse("chat:save_preset", args=[conversation.pk])
    refused = browser.post(address, {"name": "  "})
    assert refused.status_code == 422
    assert "Enter a preset name." in refused.content.decode()
    assert not Preset.objects.exists()


def test_apply_keeps_the_prompt_if_the_preset_has_none(alice: User, demo_server: Server) -> None:
    prompt = system_prompts.save_system_prompt(owner=alice, name="Short", text="Be short.")
    conversation = services.open_conversation(owner=alice, system_prompt=prompt)
    preset = presets.save(
        owner=alice, name="Cold", server=demo_server, model="m", system_prompt=None,
        params=SamplingParams(temperature=0.1),
    )  # fmt: skip
    presets.apply(preset, conversation)
    conversation.refresh_from_db()
    assert (conversation.system_prompt, conversation.model) == (prompt, "m")
    assert conversation.params == {"temperature": 0.1}


@pytest.mark.parametrize("fields", [{"name": "A"}, {"text": "B"}, {"name": " ", "text": " "}])
def test_a_system_prompt_needs_a_name_and_a_text(
    alice: User, browser: Client, fields: dict[str, str]
) -> None:
    conversation = told(alice, "q", "a")
    refused = browser.post(reverse("chat:write_prompt", args=[conversation.pk]), fields)
    assert refused.status_code == 422
    assert not SystemPrompt.objects.filter(owner=alice, name="A").exists()


def test_the_same_text_is_the_same_version(alice: User) -> None:
    def save(text: str) -> SystemPrompt:
        return system_prompts.save_system_prompt(owner=alice, name="Mine", text=text)

    first, same, changed = save("One"), save("One"), save("Two")
    assert first == same
    assert [first.version, changed.version] == [1, 2]
    newest = system_prompts.list_system_prompts(alice)
    assert [prompt.version for prompt in newest if prompt.name == "Mine"] == [2]


def test_an_archived_chat_is_listed_apart(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "q", "a")
    address = reverse("chat:archive", args=[conversation.pk])
    assert "archived." in browser.post(address, follow=True).content.decode()
    row = f'id="listed-{conversation.pk}"'
    assert row not in browser.get(reverse("chat:older_chats")).content.decode()
    assert row in browser.get(reverse("chat:older_chats"), {"archived": "1"}).content.decode()
    assert "unarchived." in browser.post(address, follow=True).content.decode()
    assert row in browser.get(reverse("chat:older_chats")).content.decode()


def test_find_gives_one_result_per_chat_with_the_number_of_others(
    alice: User, browser: Client
) -> None:
    conversation = told(alice, "a kettle", "the kettle", "my kettle")
    found = browser.get(reverse("chat:search"), {"q": "kettle"}).content.decode()
    assert found.count('role="option"') == 1
    assert f"/chat/{conversation.pk}/?message=" in found
    assert ">+3</span>" in found  # the title has the word too
    nothing = browser.get(reverse("chat:search"), {"q": "teapot"}).content.decode()
    assert f"/chat/{conversation.pk}/" not in nothing


def test_bad_numbers_in_the_list_are_ignored(alice: User, browser: Client) -> None:
    conversation = told(alice, "q", "a")
    query = {"tag": "x", "from": "-1"}
    listed = browser.get(reverse("chat:older_chats"), query).content.decode()
    assert f'id="listed-{conversation.pk}"' in listed
