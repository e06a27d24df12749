"""Reading what other programs export: whole conversations, or a sentence that says why not."""

import io
import json
import zipfile
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.chat import exports, importing, imports, services
from apps.chat.models import Conversation, Message
from apps.chat.services import save_system_prompt
from tests.chat.conftest import told


def node(key: str, parent: str | None, role: str | None, *parts: object, **more: Any) -> Any:
    """A node of ChatGPT's mapping."""
    if role is None:
        return key, {"id": key, "parent": parent, "message": None, "children": []}
    content = more.pop("content", {"content_type": "text", "parts": list(parts)})
    message = {"author": {"role": role}, "content": content, "create_time": 1_700_000_000.5, **more}
    return key, {"id": key, "parent": parent, "message": message, "children": []}


def chatgpt(*nodes: Any, **more: Any) -> dict[str, Any]:
    fields = {"title": "Kettles", "conversation_id": "c1", "create_time": 1_700_000_000, **more}
    return fields | {"mapping": dict(nodes), "current_node": nodes[-1][0]}


THOUGHTS = {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}
CHATGPT = chatgpt(
    node("root", None, None),
    node("s", "root", "system", ""),
    node("q", "s", "user", "Which kettle?"),
    node("t", "q", "assistant", content=THOUGHTS),
    node("a", "t", "assistant", "The blue one.", metadata={"model_slug": "gpt-4o"}),
    node("tool", "t", "assistant", "search()", recipient="web"),
    node("q2", "a", "user", "And lamps?", {"content_type": "image_asset_pointer"}),
    node("b1", "q2", "assistant", "Green."),
    node("b2", "q2", "assistant", "Red."),
)  # fmt: skip

THOUGHT_FIRST = """<details type="reasoning" done="true" duration="3">
<summary>Thought for 3 seconds</summary>
> Bright &amp; warm
</details>
Yes."""
OPEN_WEBUI = {
    "id": "w1", "title": "Lamps", "archived": True, "pinned": True, "updated_at": 1_700_000_100,
    "created_at": 1_700_000_000, "meta": {"tags": ["home", "light"]},
    "chat": {
        "title": "Lamps", "params": {"system": "Be bright."},
        "history": {"currentId": "2", "messages": {
            "1": {"parentId": None, "role": "user", "content": "Lamp?", "timestamp": 1_700_000_001},
            "2": {"parentId": "1", "role": "assistant", "model": "qwen3", "content": THOUGHT_FIRST},
            "3": {"parentId": "1", "role": "assistant", "model": "gemma", "content": "No."},
        }},
    },
}  # fmt: skip


def read(data: object) -> list[imports.Imported]:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return list(imports.read(io.BytesIO(raw)))


def zipped(**files: object) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "."), json.dumps(data))
    return buffer.getvalue()


def test_chatgpt() -> None:
    (found,) = read([CHATGPT])
    assert (found.title, found.source) == ("Kettles", "chatgpt:c1")
    by_key = {said.key: said for said in found.messages}
    assert [said.content for said in found.messages] == [
        "Which kettle?", "The blue one.", "And lamps?\n\n[image]", "Green.", "Red."
    ]  # fmt: skip
    answer = by_key["t"]  # the thought and the answer are one message
    assert (answer.reasoning, answer.model, answer.parent) == ("Hm.", "gpt-4o", "q")
    assert by_key["b1"].parent == by_key["b2"].parent == "q2"
    assert by_key["q2"].parent == "t"
    assert found.active == "b2"
    assert answer.created == datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)


def test_a_shown_step_becomes_the_message_it_went_into() -> None:
    (found,) = read([CHATGPT | {"current_node": "a"}])
    assert found.active == "t"


def test_open_webui() -> None:
    (found,) = read([OPEN_WEBUI])
    assert (found.title, found.tags, found.system) == ("Lamps", ["home", "light"], "Be bright.")
    assert (found.archived, found.pinned, found.active) == (True, True, "2")
    question, first, second = found.messages
    assert (first.content, first.reasoning, first.model) == ("Yes.", "Bright & warm", "qwen3")
    assert second.parent == question.key


def test_a_zip_with_several_files() -> None:
    data = zipped(conversations__json=[CHATGPT], user__json={"x": 1})
    assert len(read(data)) == 1
    with pytest.raises(imports.BadFile, match=r"no conversations\.json"):
        read(zipped(user__json={}))


def test_an_answer_without_a_question_gets_one() -> None:
    (found,) = read([chatgpt(node("a", None, "assistant", "Welcome!"))])
    assert [(said.role, said.content) for said in found.messages] == [
        ("user", "…"), ("assistant", "Welcome!")
    ]  # fmt: skip


def test_empty_conversations_are_left_out() -> None:
    assert read([chatgpt(node("r", None, None))]) == []


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "This is not JSON."),
        (b"hello", "This is not JSON."),
        (b"[]", "There are no conversations in this file."),
        (b'{"a": 1}', "There are no conversations in this file."),
        (b"[1]", "a list of something else"),
        (b'[{"title": "x", "mapping": {}},', "The file is not complete JSON"),
        ([{"title": "Odd"}], "Conversation 1 (“Odd”) cannot be read: it is neither"),
        ([CHATGPT, {"mapping": []}], "Conversation 2 cannot be read: it is not built as expected"),
        (
            [chatgpt(node("a", "gone", "user", "x"))],
            "Conversation 1 (“Kettles”) cannot be read: the message before message a is missing.",
        ),
        (
            [chatgpt(node("a", "b", "user", "x"), node("b", "a", "user", "y"))],
            "its messages go round in a circle",
        ),
    ],
)
def test_what_cannot_be_read(data: object, sentence: str) -> None:
    with pytest.raises(imports.BadFile) as error:
        read(data)
    assert sentence in str(error.value)


def imported(owner: User, *items: object) -> importing.Result:
    return importing.import_file(owner, io.BytesIO(json.dumps(items).encode()))


def test_into_the_database(alice: User) -> None:
    result = imported(alice, CHATGPT, OPEN_WEBUI)
    assert result == importing.Result(conversations=2, messages=8, known=0)
    lamps = Conversation.objects.owned_by(alice).get(title="Lamps")
    assert (lamps.archived, lamps.pinned, str(lamps.system_prompt)) == (True, True, "Imported")
    assert [tag.name for tag in lamps.tags.all()] == ["home", "light"]
    assert lamps.updated == datetime.fromtimestamp(1_700_000_100, UTC)
    shown = [item.message for item in services.active_branch(lamps)]
    assert [message.content for message in shown] == ["Lamp?", "Yes."]
    assert shown[0].created == datetime.fromtimestamp(1_700_000_001, UTC)
    assert imported(alice, CHATGPT, OPEN_WEBUI).known == 2  # a second time nothing comes


def test_all_or_nothing(alice: User) -> None:
    many = [CHATGPT | {"conversation_id": str(n)} for n in range(150)]
    with pytest.raises(imports.BadFile, match="Conversation 151"):
        imported(alice, *many, {"title": "Odd"})
    assert not Conversation.objects.exists()
    assert not Message.objects.exists()


def test_our_own_export_and_back(alice: User, bob: User) -> None:
    conversation = told(alice, "one", "two", "three", "four", reasoning="Hm.", model="m")
    first = conversation.messages.first()
    conversation.messages.create(parent=first, role="assistant", content="another two")
    conversation.system_prompt = save_system_prompt(owner=alice, name="Dry", text="Be dry.")
    conversation.save()
    data = f'{{"conversations": [{exports.one(conversation, "json")}]}}'
    importing.import_file(bob, io.BytesIO(data.encode()))
    copy = Conversation.objects.owned_by(bob).get()
    assert copy.system_prompt is not None
    assert (copy.title, copy.system_prompt.text) == ("Kettles", "Be dry.")
    shown = [item.message for item in services.active_branch(copy)]
    assert [message.content for message in shown] == ["one", "two", "three", "four"]
    assert (shown[-1].reasoning, shown[-1].model) == ("Hm.", "m")
    assert copy.messages.count() == 5


def test_the_page(browser: Client) -> None:
    address = reverse("chat:import_page")
    assert "Import conversations" in browser.get(address).content.decode()
    good = SimpleUploadedFile("conversations.json", json.dumps([CHATGPT]).encode())
    html = browser.post(address, {"file": good}).content.decode()
    assert "1 conversation with 5 messages imported." in html
    assert "Kettles" in html
    bad = SimpleUploadedFile("x.json", b"[{")
    answer = browser.post(address, {"file": bad})
    assert answer.status_code == 422
    assert "Nothing was imported." in answer.content.decode()
    assert "Choose a file first." in browser.post(address).content.decode()


def test_over_http(api: Client) -> None:
    file = SimpleUploadedFile("conversations.zip", zipped(conversations__json=[CHATGPT]))
    made = api.post("/api/v1/conversations/import", {"file": file})
    assert (made.status_code, made.json()) == (
        201, {"conversations": 1, "messages": 5, "known": 0}
    )  # fmt: skip
    bad = api.post("/api/v1/conversations/import", {"file": SimpleUploadedFile("x", b"{}")})
    assert (bad.status_code, bad.json()["code"]) == (422, "bad_file")
