"""Exports and shared copies."""

import io
import json
import uuid

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from apps.chat.conversation_list import library
from apps.chat.conversations import services
from apps.chat.models import CallState, Conversation, Share, ToolCall
from apps.chat.presets import system_prompts
from apps.chat.transfer import exports, write
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.conftest import told


@pytest.fixture
def kettles(alice: User) -> Conversation:
    conversation = told(
        alice, "Which?", "The **blue** one.", "Why?", "Watts.", reasoning="Hm.\nYes.", model="m"
    )
    prompt = system_prompts.save_system_prompt(owner=alice, name="Dry", text="Be dry.")
    conversation.system_prompt = prompt
    conversation.save()
    return conversation


def test_markdown(kettles: Conversation) -> None:
    text = exports.export_one(kettles, "md")
    assert text.startswith("# Kettles\n\n## System prompt\n\nBe dry.\n\n## Question\n\nWhich?")
    assert "## Answer (m)\n\n> **Thinking**\n>\n> Hm.\n> Yes.\n\nWatts.\n" in text


def test_training_data(kettles: Conversation) -> None:
    kettles.messages.filter(content="Watts.").update(content="")
    line = json.loads(exports.export_one(kettles, "jsonl"))
    assert line == {
        "messages": [
            {"role": "system", "content": "Be dry."},
            {"role": "user", "content": "Which?"},
            {"role": "assistant", "content": "The **blue** one."},
        ]
    }


@pytest.fixture
def with_a_call(alice: User) -> Conversation:
    conversation = told(alice, "How much?", "Let me see.\n\nIt is 42.")
    ToolCall.objects.create(
        answer_id=conversation.active_leaf_id, round=1, call_id="a", name="calculator",
        arguments='{"expression":  "6*7"}', text_to=11, state=CallState.DONE, result="42",
    )  # fmt: skip
    return conversation


def test_calls_are_training_data_too(with_a_call: Conversation) -> None:
    line = json.loads(exports.export_one(with_a_call, "jsonl"))
    call = {"name": "calculator", "arguments": '{"expression":  "6*7"}'}
    assert line["messages"] == [
        {"role": "user", "content": "How much?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{"id": "a", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
    ]
    assert [tool["function"]["name"] for tool in line["tools"]] == ["calculator"]


def test_calls_to_read(with_a_call: Conversation) -> None:
    ToolCall.objects.update(result="```\nx")
    text = exports.export_one(with_a_call, "md")
    before, _, after = text.partition("**Called `calculator`**")
    assert before.endswith("Let me see.\n\n")
    assert '"expression": "6*7"' in after
    assert "````\n```\nx\n````\n\nIt is 42.\n" in after


def test_calls_come_back(with_a_call: Conversation, bob: User) -> None:
    file = b'{"format": "workbench-conversations", "version": 1, "conversations": [%s]}'
    data = exports.export_one(with_a_call, "json").encode()
    write.import_file(bob, io.BytesIO(file % data))
    copy = Conversation.objects.get(owner=bob)
    assert exports.export_one(copy, "jsonl") == exports.export_one(with_a_call, "jsonl")


def test_nothing_to_learn_from(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Which?")
    assert exports.export_one(conversation, "jsonl") == ""
    address = reverse("chat:export", args=[conversation.pk, "jsonl"])
    assert "no finished answer yet" in browser.get(address, follow=True).content.decode()


@pytest.mark.parametrize(
    ("title", "name"),
    [("A b/c", "A-b-c.md"), ('"; x=\r\n', "x.md"), ("Grüße", "Gr-e.md"), ("…", "conversation.md")],
)
def test_file_names(title: str, name: str) -> None:
    assert exports.file_name(title, ".md") == name


async def body(response: object) -> str:
    return "".join([chunk.decode() async for chunk in response.streaming_content])  # type: ignore[attr-defined]


@pytest.mark.django_db(transaction=True)
async def test_export_holds_all_conversations_of_its_owner(
    alice: User, bob: User, alice_browser: AsyncClient
) -> None:
    for number in range(25):
        await in_db(told, alice, f"Question {number}", "Answer")
    await in_db(told, bob, "His", "Own")
    whole = await alice_browser.get(reverse("chat:export_all", args=["json"]))
    assert "attachment" in whole["Content-Disposition"]
    data = json.loads(await body(whole))
    assert (data["format"], data["version"]) == ("workbench-conversations", 1)
    assert len(data["conversations"]) == 25
    lines = await body(await alice_browser.get(reverse("chat:export_all", args=["jsonl"])))
    assert [json.loads(line)["messages"][0]["content"] for line in lines.splitlines()] == [
        f"Question {number}" for number in range(25)
    ]
    texts = await body(await alice_browser.get(reverse("chat:export_all", args=["md"])))
    assert texts.count("# Kettles") == 25
    ids = [c.pk async for c in Conversation.objects.all()]  # with bob's, which stays out
    ticked = await alice_browser.post(reverse("chat:export_many"), {"id": ids, "as": "jsonl"})
    assert len((await body(ticked)).splitlines()) == 25


@pytest.mark.django_db(transaction=True)
async def test_over_http(alice: User, alice_api: AsyncClient, bob_api: AsyncClient) -> None:
    conversation = await in_db(told, alice, "Which?", "Blue.")
    address = f"/api/v1/conversations/{conversation.pk}/export"
    assert "Blue." in await body(await alice_api.get(f"{address}?format=md"))
    assert (await bob_api.get(address)).status_code == 404
    assert (await alice_api.get(f"{address}?format=exe")).status_code == 422
    everything = await alice_api.get("/api/v1/conversations/export?format=jsonl")
    assert len((await body(everything)).splitlines()) == 1


def test_an_unknown_format(browser: Client, kettles: Conversation) -> None:
    assert browser.get(reverse("chat:export", args=[kettles.pk, "exe"])).status_code == 404
    assert browser.get(reverse("chat:export_all", args=["exe"])).status_code == 404


def test_export_of_someone_elses_conversation_is_not_found(
    bobs_browser: Client, kettles: Conversation
) -> None:
    assert bobs_browser.get(reverse("chat:export", args=[kettles.pk, "md"])).status_code == 404


def test_a_shared_copy(
    browser: Client, bobs_browser: Client, kettles: Conversation
) -> None:  # fmt: skip
    made = browser.post(reverse("chat:share", args=[kettles.pk]))
    address = made.headers["location"]
    assert "Stop sharing" in browser.get(address).content.decode()
    html = bobs_browser.get(address).content.decode()
    assert "<strong>blue</strong>" in html
    assert "Stop sharing" not in html
    kettles.messages.update(content="Changed")
    assert "<strong>blue</strong>" in bobs_browser.get(address).content.decode()
    stop = reverse("chat:unshare", args=[Share.objects.get().token])
    assert bobs_browser.post(stop).status_code == 404
    assert Client().get(address).status_code == 302  # not without a login
    browser.post(stop)
    assert bobs_browser.get(address).status_code == 404


def test_a_deleted_conversation_is_no_longer_shared(
    alice: User, browser: Client, bobs_browser: Client, kettles: Conversation
) -> None:
    address = browser.post(reverse("chat:share", args=[kettles.pk])).headers["location"]
    library.delete(Conversation.objects.owned_by(alice))
    assert bobs_browser.get(address).status_code == 404


def test_an_empty_conversation_is_not_shared(
    alice: User, browser: Client, demo_server: Server
) -> None:
    empty = services.open_conversation(owner=alice)
    said = browser.post(reverse("chat:share", args=[empty.pk]), follow=True).content.decode()
    assert "nothing to share yet" in said


def test_sharing_over_http(api: Client, bobs_api: Client, kettles: Conversation) -> None:
    address = f"/api/v1/conversations/{kettles.pk}/shares"
    assert bobs_api.post(address).status_code == 404
    made = api.post(address).json()
    assert made["url"].endswith(f"/chat/shared/{made['token']}/")
    assert bobs_api.delete(f"/api/v1/shares/{made['token']}").status_code == 404
    assert api.delete(f"/api/v1/shares/{made['token']}").status_code == 204
    assert api.delete(f"/api/v1/shares/{uuid.uuid4()}").status_code == 404
