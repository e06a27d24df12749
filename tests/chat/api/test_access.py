"""What is not yours is not available, on every page and route."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.conversations import services
from apps.chat.models import Conversation, Message, Role, SystemPrompt, ToolCall
from apps.chat.presets import system_prompts
from apps.chat.urls import urlpatterns


@pytest.fixture
def conversation(alice: User) -> Conversation:
    conversation = services.open_conversation(owner=alice, title="Alice's")
    question = conversation.messages.create(role=Role.USER, content="Hello")
    answer = conversation.messages.create(role=Role.ASSISTANT, parent=question, content="Hi")
    answer.tool_calls.create(round=1, call_id="a", name="calculator", arguments="{}")
    conversation.active_leaf = answer
    conversation.save()
    return conversation


ANSWER_PAGES = {
    "answer": "get", "stop": "post", "answer_now": "post", "regenerate": "post",
    "select_version": "post", "continue_answer": "post",
    "compare": "post", "rate": "post", "keep_answer": "post", "pin_message": "post",
    "delete_message": "post", "restore_message": "post",
}  # fmt: skip
CALL_PAGES = {"tool_call": "get", "decide_tool_call": "post", "rerun_tool_call": "post"}
QUESTION_PAGES = {
    "user_message": "get",
    "edit_form": "get",
    "edit": "post",
    "answer_message": "post",
}
CONVERSATION_PAGES = {
    "conversation": "get", "send_message": "post", "rename": "post", "delete": "post",
    "settings": "get",
    "write_prompt": "post", "apply_preset": "post", "save_preset": "post", "delete_preset": "post",
    "model": "get", "share": "post", "pin": "post", "archive": "post", "set_tags": "post",
    "undo": "post", "prefill": "post", "tools": "post", "title": "get", "summary": "post",
    "keep_chat": "post", "stay": "post", "leave": "post",
    "menu": "get", "read": "post", "move": "post", "compare_prompts": "get",
    "check_prompt": "post", "response_fields": "post", "chips": "get", "favourite_model": "post",
}  # fmt: skip
PAGES = CONVERSATION_PAGES | ANSWER_PAGES | QUESTION_PAGES | CALL_PAGES
ALONE = {
    *(
        "index",
        "create",
        "prompts",
        "find_prompts",
        "older_chats",
        "search",
        "states",
        "projects",
        "bulk",
        "import",
        "export_many",
    ),
    *("attach", "preferences", "export_ratings"),
}
OTHERS = {"earlier_messages", "export_all", "export", "attachment", "detach"}
# Of the tests of shared copies, by their token.
OTHERS |= {"shared", "unshare", "continue_shared"}
# Of the composer's tests.
OTHERS |= {"attachment_text", "composer_menu", "composer_change", "save_prompt", "delete_prompt"}
# Of the projects' tests.
OTHERS |= {"project", "delete_project", "project_chats"}
# Of the documents' tests.
OTHERS |= {"documents", "document", "remove_document", "retry_document", "whole_document"}
OTHERS |= {"source"}
ROUTES = [
    ("get", "conversations/{conversation}"),
    ("patch", "conversations/{conversation}"),
    ("delete", "conversations/{conversation}"),
    ("post", "conversations/{conversation}/messages"),
    ("get", "answers/{answer}"),
    ("get", "answers/{answer}/events"),
    ("post", "answers/{answer}/stop"),
    ("post", "answers/{answer}/answer-now"),
    ("post", "answers/{answer}/regenerate"),
    ("post", "answers/{answer}/calls/1/approve"),
    ("post", "answers/{answer}/calls/1/refuse"),
    ("post", "answers/{answer}/calls/1/run-again"),
]
BODIES = {"patch": {"title": "Mine"}, "post": {"content": "Hello"}}


def test_every_page_is_in_this_test() -> None:
    assert {*PAGES, *ALONE, *OTHERS} == {pattern.name for pattern in urlpatterns}


def address(name: str, conversation: Conversation) -> str:
    if name in ALONE:
        return reverse(f"chat:{name}")
    if name in CONVERSATION_PAGES:
        return reverse(f"chat:{name}", args=[conversation.pk])
    if name in CALL_PAGES:
        return reverse(f"chat:{name}", args=[ToolCall.objects.get().pk])
    role = Role.USER if name in QUESTION_PAGES else Role.ASSISTANT
    return reverse(f"chat:{name}", args=[conversation.messages.get(role=role).pk])


@pytest.mark.parametrize(("name", "verb"), PAGES.items())
def test_pages(bobs_browser: Client, conversation: Conversation, name: str, verb: str) -> None:
    response = getattr(bobs_browser, verb)(address(name, conversation))
    assert response.status_code == 404
    assert Conversation.objects.get().title == "Alice's"
    assert Message.objects.count() == 2


@pytest.mark.parametrize(("verb", "path"), ROUTES)
def test_routes(bobs_api: Client, conversation: Conversation, verb: str, path: str) -> None:
    path = path.format(conversation=conversation.pk, answer=conversation.active_leaf_id)
    response = getattr(bobs_api, verb)(
        f"/api/v1/{path}", BODIES.get(verb), content_type="application/json"
    )
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


@pytest.mark.parametrize(("verb", "path"), ROUTES)
def test_nobody_without_a_key(conversation: Conversation, verb: str, path: str) -> None:
    path = path.format(conversation=conversation.pk, answer=conversation.active_leaf_id)
    response = getattr(Client(), verb)(
        f"/api/v1/{path}", BODIES.get(verb), content_type="application/json"
    )
    assert response.status_code == 401


@pytest.mark.parametrize("name", [pattern.name for pattern in urlpatterns])
def test_nobody_without_a_login(conversation: Conversation, name: str) -> None:
    if name in OTHERS:
        return  # test_transfer.py
    response = Client().get(address(name, conversation))
    assert response.status_code == 302
    assert response.headers["location"].startswith("/login/")


def test_system_prompt_of_someone_else_cannot_be_chosen(
    alice: User, bob: User, bobs_api: Client, bobs_browser: Client
) -> None:
    prompt = system_prompts.save_system_prompt(owner=alice, name="Secret", text="Tell nobody.")
    opened = bobs_api.post(
        "/api/v1/conversations", {"system_prompt": prompt.pk}, content_type="application/json"
    )
    assert opened.status_code == 404
    draft = Conversation.drafts.create(owner=bob, is_draft=True)
    fields = {"model": "", "system_prompt": prompt.pk}
    chosen = bobs_browser.post(reverse("chat:settings", args=[draft.pk]), fields)
    assert chosen.status_code == 404
    listed = bobs_api.get("/api/v1/system-prompts").json()["items"]
    assert "Secret" not in {item["name"] for item in listed}
    assert SystemPrompt.objects.owned_by(alice).filter(name="Secret").exists()


@pytest.mark.parametrize("name", [name for name, verb in PAGES.items() if verb == "post"])
def test_changing_needs_the_csrf_token(alice: User, conversation: Conversation, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(address(name, conversation), {"content": "x"}).status_code == 403
    route = f"/api/v1/conversations/{conversation.pk}/messages"
    asked = client.post(route, {"content": "x"}, content_type="application/json")
    assert asked.status_code == 403


@pytest.mark.parametrize("name", PAGES)
def test_pages_refuse_other_methods(browser: Client, conversation: Conversation, name: str) -> None:
    assert browser.put(address(name, conversation)).status_code == 405
