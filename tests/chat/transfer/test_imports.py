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

from apps.chat.conversations import branch_view
from apps.chat.models import Conversation, Message
from apps.chat.presets.system_prompts import save_system_prompt
from apps.chat.prompt import branch
from apps.chat.transfer import exports, write
from apps.chat.transfer import read as transfer_read
from apps.chat.transfer.normalise import ImportedConversation, MessageContent
from tests.chat.conftest import told
from tests.markup import visible_text


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
    node("c", "t", "assistant", "search()", recipient="web.run"),
    node("r", "c", "tool", "3 hits"),
    node("a", "r", "assistant", "The blue one.", metadata={"model_slug": "gpt-4o"}),
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


def read(data: object) -> list[ImportedConversation]:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return list(transfer_read.read(io.BytesIO(raw)))


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
    assert [said.content.content for said in found.messages] == [
        "Which kettle?", "The blue one.", "And lamps?\n\n[image]", "Green.", "Red."
    ]  # fmt: skip
    answer = by_key["t"]  # the thought and the answer are one message
    assert (answer.content.reasoning, answer.model, answer.parent) == ("Hm.", "gpt-4o", "q")
    (made,) = answer.content.calls
    assert (made.name, made.arguments) == ("web_run", '{"input": "search()"}')
    assert (made.state, made.result, made.text_to) == ("done", "3 hits", 0)
    assert by_key["b1"].parent == by_key["b2"].parent == "q2"
    assert by_key["q2"].parent == "t"
    assert found.active == "b2"
    assert answer.created == datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)


def test_a_shown_step_becomes_the_message_it_went_into() -> None:
    (found,) = read([CHATGPT | {"current_node": "a"}])
    assert found.active == "t"


def test_endings_of_the_same_steps_stay_apart() -> None:
    (found,) = read([chatgpt(
        node("q", None, "user", "Search."),
        node("step", "q", "assistant", "Let me look."),
        node("tool", "step", "tool", "3 hits"),
        node("a", "tool", "assistant", "One."),
        node("thanks", "a", "user", "Thanks"),
        node("b", "tool", "assistant", "Two."),
    )])  # fmt: skip
    assert [(said.key, said.parent, said.content.content) for said in found.messages] == [
        ("q", None, "Search."),
        ("step", "q", "Let me look.\n\nOne."),
        ("thanks", "step", "Thanks"),
        ("b", "q", "Let me look.\n\nTwo."),
    ]
    assert found.active == "b"


def test_calls_of_chatgpt_stand_where_they_were_made() -> None:
    code = {"content_type": "code", "text": "print(6 * 7)"}
    output = {"content_type": "execution_output", "text": "42"}
    error = {"content_type": "system_error", "text": "Too slow."}
    nodes = (
        node("q", None, "user", "6 * 7?"),
        node("a", "q", "assistant", "Let me see."),
        node("c", "a", "assistant", content=code, recipient="python"),
        node("r", "c", "tool", content=output),
        node("b", "r", "assistant", "It is 42. Sure?"),
        node("d", "b", "assistant", '{"q": "x"}', recipient="search"),
        node("e", "d", "tool", content=error),
        node("f", "e", "tool", "Try later."),
        node("g", "f", "assistant", "Sure."),
        node("h", "d", "assistant", "No."),
        node("bio", "h", "tool", "Nobody called this."),
    )
    _, answer, other = read([chatgpt(*nodes)])[0].messages
    assert answer.content.content == "Let me see.\n\nIt is 42. Sure?\n\nSure."
    first, second = answer.content.calls
    assert first.arguments == '{"input": "print(6 * 7)"}'
    assert (first.round, first.text_to, first.result) == (1, 11, "42")
    assert (second.arguments, second.state) == ('{"q": "x"}', "failed")
    assert (second.round, second.text_to) == (2, 28)
    assert second.result == "Too slow.\n\nTry later."
    assert [call.state for call in other.content.calls] == ["done", "stopped"]
    assert other.content.content.endswith("Sure?\n\nNo.")


BLOCK = '<details type="tool_calls" done="true" id="c%d" name="%s" arguments="%s"%s>\n'
IN_TEXT = (
    "Let me see.\n"
    + BLOCK
    % (1, "add", "&quot;{\\&quot;x\\&quot;: 1}&quot;", ' result="&quot;it &gt; 1&quot;" files=""')
    + "<summary>Tool Executed</summary>\n</details>\n"
    + BLOCK % (2, "get weather", "{&quot;at&quot;: &quot;Oslo&quot;}", "")
    + "<summary>Tool Executed</summary>\n[&quot;rain&quot;]\n</details>\n"
    + '<details type="reasoning" done="true">\n<summary>x</summary>\n> Hm\n</details>\n'
    + '<details type="code_interpreter" done="true" output="{&quot;stdout&quot;: &quot;2&quot;}">\n'
    + "<summary>Analyzed</summary>\n```python\nprint(2)\n```\n</details>\nDone."
)
BESIDE = [
    {"type": "message", "content": [{"type": "output_text", "text": "Let me see."}]},
    {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"x": 1}'},
    {"type": "function_call", "call_id": "c2", "name": "sub", "arguments": "odd"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"text": "it > 1"}]},
    {"type": "reasoning", "summary": [{"text": "Hm"}]},
    {"type": "message", "content": [{"type": "output_text", "text": "Done."}]},
]


def words_of(said: str, **more: Any) -> MessageContent:
    """What Open WebUI's answer says."""
    messages: dict[str, dict[str, Any]] = {
        "1": {"parentId": None, "role": "user", "content": "?"},
        "2": {"parentId": "1", "role": "assistant", "content": said, **more},
    }
    (found,) = read([{"id": "w", "chat": {"history": {"messages": messages, "currentId": "2"}}}])
    return found.messages[1].content


def test_calls_of_open_webui_in_the_text() -> None:
    words = words_of(IN_TEXT)
    assert (words.content, words.reasoning) == ("Let me see.\n\nDone.", "Hm")
    first, second, third = words.calls
    assert (first.call_id, first.arguments, first.result) == ("c1", '{"x": 1}', "it > 1")
    assert (second.name, second.arguments) == ("get_weather", '{"at": "Oslo"}')
    assert second.result == '["rain"]'
    assert json.loads(third.arguments) == {"code": "print(2)"}
    assert [call.round for call in words.calls] == [1, 1, 2]
    assert [call.text_to for call in words.calls] == [11, 11, 11]
    assert [call.reasoning_to for call in words.calls] == [0, 0, 2]


def test_open_webui_calls_next_to_the_text_are_imported() -> None:
    words = words_of("Let me see. Done.", output=BESIDE)
    assert (words.content, words.reasoning) == ("Let me see.\n\nDone.", "Hm")
    assert [(call.state, call.result) for call in words.calls] == [
        ("done", "it > 1"), ("stopped", "")
    ]  # fmt: skip
    assert words.calls[1].arguments == '{"input": "odd"}'


def test_imported_tool_calls_are_shown_and_sent_like_own_ones(alice: User, browser: Client) -> None:
    chat = {"messages": {
        "1": {"parentId": None, "role": "user", "content": "?"},
        "2": {"parentId": "1", "role": "assistant", "content": IN_TEXT},
    }, "currentId": "2"}  # fmt: skip
    imported(alice, {"id": "w", "chat": {"title": "Tools", "history": chat}})
    conversation = Conversation.objects.get()
    html = browser.get(reverse("chat:conversation", args=[conversation.pk])).content.decode()
    assert html.count('class="call call-done"') == 3
    assert "it &gt; 1" in html
    answer = conversation.messages.get(role="assistant")
    turns = branch.messages_of_answer(answer, list(answer.tool_calls.all()))
    said = [(turn.role, turn.content) for turn in turns]
    assert said == [
        ("assistant", "Let me see."), ("tool", "it > 1"), ("tool", '["rain"]'),
        ("assistant", ""), ("tool", '{"stdout": "2"}'), ("assistant", "Done."),
    ]  # fmt: skip


def test_places_in_lists_of_sources_are_left_out() -> None:
    said = "Tea is a plant\ue200cite\ue202turn0search1\ue201."
    (found,) = read([chatgpt(node("q", None, "user", "Tea?"), node("a", "q", "assistant", said))])
    assert found.messages[1].content.content == "Tea is a plant."


def test_open_webui() -> None:
    (found,) = read([OPEN_WEBUI])
    assert (found.title, found.tags, found.system) == ("Lamps", ["home", "light"], "Be bright.")
    assert (found.archived, found.pinned, found.active) == (True, True, "2")
    question, first, second = found.messages
    assert (first.content.content, first.content.reasoning, first.model) == (
        "Yes.",
        "Bright & warm",
        "qwen3",
    )
    assert second.parent == question.key


def test_a_zip_with_several_files() -> None:
    data = zipped(conversations__json=[CHATGPT], user__json={"x": 1})
    assert len(read(data)) == 1
    with pytest.raises(transfer_read.BadFile, match=r"no conversations\.json"):
        read(zipped(user__json={}))


def test_an_answer_without_a_question_gets_one() -> None:
    (found,) = read([chatgpt(node("a", None, "assistant", "Welcome!"))])
    assert [(said.role, said.content.content) for said in found.messages] == [
        ("user", "…"), ("assistant", "Welcome!")
    ]  # fmt: skip


def test_empty_conversations_are_left_out() -> None:
    assert read([chatgpt(node("r", None, None))]) == []


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "This file is not JSON."),
        (b"hello", "This file is not JSON."),
        (b"[]", "No chats found in this file."),
        (b'{"a": 1}', "No chats found in this file."),
        (b"[1]", "not a list of chats"),
        (b'[{"title": "x", "mapping": {}},', "The JSON in this file is incomplete"),
        ('[{"title": "Größe"}]'.encode("latin-1"), "The file is not UTF-8"),
        ([{"title": "Odd"}], "Chat 1 (“Odd”) could not be read: it is not a"),
        (
            [CHATGPT, {"mapping": []}],
            "Chat 2 could not be read: it has an unexpected structure",
        ),
        (
            [chatgpt(node("a", "gone", "user", "x"))],
            "Chat 1 (“Kettles”) could not be read: the message before message a is missing.",
        ),
        (
            [chatgpt(node("a", "b", "user", "x"), node("b", "a", "user", "y"))],
            "its messages form a loop",
        ),
    ],
)
def test_read_refuses_an_unreadable_file_with_a_sentence(data: object, sentence: str) -> None:
    with pytest.raises(transfer_read.BadFile) as error:
        read(data)
    assert sentence in str(error.value)


def imported(owner: User, *items: object) -> write.Result:
    return write.import_file(owner, io.BytesIO(json.dumps(items).encode()))


def test_into_the_database(alice: User) -> None:
    result = imported(alice, CHATGPT, OPEN_WEBUI)
    assert result == write.Result(conversations=2, messages=8, known=0)
    lamps = Conversation.objects.owned_by(alice).get(title="Lamps")
    assert (lamps.archived, lamps.pinned, str(lamps.system_prompt)) == (
        True,
        True,
        "Imported",
    )
    assert [tag.name for tag in lamps.tags.all()] == ["home", "light"]
    assert lamps.updated == datetime.fromtimestamp(1_700_000_100, UTC)
    shown = [item.message for item in branch_view.active_branch(lamps)]
    assert [message.content for message in shown] == ["Lamp?", "Yes."]
    assert shown[0].created == datetime.fromtimestamp(1_700_000_001, UTC)
    assert imported(alice, CHATGPT, OPEN_WEBUI).known == 2  # a second time nothing comes


def test_import_writes_nothing_if_one_conversation_is_bad(alice: User) -> None:
    many = [CHATGPT | {"conversation_id": str(n)} for n in range(150)]
    with pytest.raises(transfer_read.BadFile, match="Chat 151"):
        imported(alice, *many, {"title": "Odd"})
    assert not Conversation.objects.exists()
    assert not Message.objects.exists()


def test_our_own_export_and_back(alice: User, bob: User) -> None:
    conversation = told(alice, "one", "two", "three", "four", reasoning="Hm.", model="m")
    first = conversation.messages.first()
    conversation.messages.create(parent=first, role="assistant", content="another two")
    conversation.system_prompt = save_system_prompt(owner=alice, name="Dry", text="Be dry.")
    conversation.save()
    data = f'{{"conversations": [{exports.export_one(conversation, "json")}]}}'
    write.import_file(bob, io.BytesIO(data.encode()))
    copy = Conversation.objects.owned_by(bob).get()
    assert copy.system_prompt is not None
    assert (copy.title, copy.system_prompt.text) == ("Kettles", "Be dry.")
    shown = [item.message for item in branch_view.active_branch(copy)]
    assert [message.content for message in shown] == ["one", "two", "three", "four"]
    assert (shown[-1].reasoning, shown[-1].model) == ("Hm.", "m")
    assert copy.messages.count() == 5


def test_the_page(browser: Client) -> None:
    address = reverse("chat:import")
    assert "Import chats" in browser.get(address).content.decode()
    good = SimpleUploadedFile("conversations.json", json.dumps([CHATGPT]).encode())
    html = browser.post(address, {"file": good}).content.decode()
    assert "5 messages imported." in visible_text(html)
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
        201, {"conversations": 1, "messages": 5, "known": 0, "documents": 0}
    )  # fmt: skip
    bad = api.post("/api/v1/conversations/import", {"file": SimpleUploadedFile("x", b"{}")})
    assert (bad.status_code, bad.json()["code"]) == (422, "bad_file")
