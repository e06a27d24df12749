"""Asking, answering again, branching and failing, over the API and the pages."""

import pytest
from django.test import AsyncClient
from django.urls import reverse

from apps.chat.models import Conversation, Message, Status, SystemPrompt
from apps.servers.models import DefaultServer, Server, Use
from tests.chat.conftest import ask, ask_in, events_of
from tests.llama_process import free_port

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"


async def test_page_starts_an_answer_and_continues_it(
    alice_browser: AsyncClient, server: Server, slow_llama: None
) -> None:
    begun = await alice_browser.post(
        reverse("chat:create"), {"content": "Why is the sky blue?\nIn short."}
    )
    assert begun.status_code == 302
    conversation = await Conversation.objects.aget()
    assert conversation.title == "Why is the sky blue?"
    page = (await alice_browser.get(begun.headers["location"])).content.decode()
    answer = await Message.objects.answers().aget()
    assert "In short." in page
    await alice_browser.post(reverse("chat:stop", args=[answer.pk]))
    fragment = await alice_browser.get(reverse("chat:answer", args=[answer.pk]))
    assert "data-events" not in fragment.content.decode()
    asked = await alice_browser.post(
        reverse("chat:send_message", args=[conversation.pk]), {"content": "And at night?"}
    )
    assert asked.status_code == 200
    assert "data-events" in asked.content.decode()
    last = await Message.objects.answers().alast()
    assert last is not None
    # The events speak to the login session as well: EventSource sends no key.
    await alice_browser.post(f"/api/v1/answers/{last.pk}/stop")
    assert (await events_of(alice_browser, last.pk))[-1].name == "done"
    again = await alice_browser.post(reverse("chat:regenerate", args=[last.pk]))
    assert "2/2" not in again.content.decode()  # it is being written: no footer yet
    assert await Message.objects.answers().acount() == 3
    newest = await Message.objects.answers().alast()
    assert newest is not None
    await alice_browser.post(reverse("chat:stop", args=[newest.pk]))


async def test_a_second_question_waits_for_the_answer(
    alice_api: AsyncClient, server: Server, slow_llama: None
) -> None:
    conversation, answer = await ask(alice_api, max_tokens=3000)
    refused = await alice_api.post(
        f"/api/v1/conversations/{conversation}/messages", {"content": "Now"}, content_type=JSON
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "still_answering")
    again = await alice_api.post(f"/api/v1/answers/{answer}/regenerate")
    assert again.status_code == 409
    await alice_api.post(f"/api/v1/answers/{answer}/stop")


async def test_regenerate_adds_a_sibling(alice_api: AsyncClient, server: Server) -> None:
    conversation, first = await ask(alice_api)
    await events_of(alice_api, first)
    again = await alice_api.post(f"/api/v1/answers/{first}/regenerate")
    assert again.status_code == 202
    second = again.json()["answer"]["id"]
    await events_of(alice_api, second)
    active = (await alice_api.get(f"/api/v1/conversations/{conversation}")).json()
    tree = (await alice_api.get(f"/api/v1/conversations/{conversation}?tree=true")).json()
    assert [message["id"] for message in active["messages"]][1:] == [second]
    assert len(tree["messages"]) == 3
    back = await alice_api.patch(
        f"/api/v1/conversations/{conversation}", {"active_leaf": first}, content_type=JSON
    )
    assert back.json()["active_leaf"] == first


async def test_a_question_elsewhere_in_the_tree(alice_api: AsyncClient, server: Server) -> None:
    conversation, first = await ask(alice_api)
    await events_of(alice_api, first)
    second = await ask_in(alice_api, conversation)
    await events_of(alice_api, second)
    branch = await alice_api.post(
        f"/api/v1/conversations/{conversation}/messages",
        {"content": "Otherwise", "parent": first, "params": {"max_tokens": 5}},
        content_type=JSON,
    )
    assert branch.json()["question"]["parent"] == first
    await events_of(alice_api, branch.json()["answer"]["id"])
    question = branch.json()["question"]["id"]
    wrong = await alice_api.post(
        f"/api/v1/conversations/{conversation}/messages",
        {"content": "x", "parent": question},
        content_type=JSON,
    )
    assert (wrong.status_code, wrong.json()["code"]) == (422, "wrong_parent")


async def test_the_system_prompt_is_sent_and_stays(alice_api: AsyncClient, server: Server) -> None:
    prompts = (await alice_api.get("/api/v1/system-prompts")).json()["items"]
    assert [prompt["name"] for prompt in prompts][:2] == ["Helpful assistant", "Short answers"]
    long = "You are a careful assistant. " * 20
    first = await alice_api.post(
        "/api/v1/system-prompts", {"name": "Careful", "text": long}, content_type=JSON
    )
    assert (first.status_code, first.json()["version"]) == (201, 1)
    conversation, answer = await ask(alice_api, system_prompt=first.json()["id"])
    assert (await events_of(alice_api, answer))[-2]["prompt_tokens"] > len(long)
    changed = await alice_api.post(
        "/api/v1/system-prompts", {"name": "Careful", "text": "Be brief."}, content_type=JSON
    )
    assert changed.json()["version"] == 2
    same = await alice_api.post(
        "/api/v1/system-prompts", {"name": "Careful", "text": "Be brief."}, content_type=JSON
    )
    assert same.json() == changed.json()
    kept = await SystemPrompt.objects.aget(pk=first.json()["id"])
    assert kept.text == long
    shown = (await alice_api.get(f"/api/v1/conversations/{conversation}")).json()
    assert shown["system_prompt"] == kept.pk


async def test_a_server_that_is_not_there(alice_api: AsyncClient) -> None:
    server = await Server.objects.acreate(
        name="Gone", base_url=f"http://127.0.0.1:{free_port()}/v1"
    )
    await DefaultServer.objects.acreate(use=Use.CHAT, server=server)
    _, answer = await ask(alice_api)
    end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end["code"]) == ("error", "unreachable")
    shown = (await alice_api.get(f"/api/v1/answers/{answer}")).json()
    assert shown["status"] == Status.FAILED
    assert "Check that it is running" in shown["error"]["detail"]


async def test_no_server_at_all(alice_api: AsyncClient, db: None) -> None:
    _, answer = await ask(alice_api)
    end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end["code"]) == ("error", "no_server")


async def test_a_prompt_that_is_too_long(alice_api: AsyncClient, server: Server) -> None:
    _, answer = await ask(alice_api, "x" * 9000)
    end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end["code"]) == ("error", "prompt_too_long")


async def test_full_context_is_cut_and_the_answer_continues(
    alice_api: AsyncClient, server: Server
) -> None:
    conversation, answer = await ask(alice_api, "a" * 800, max_tokens=400)
    usages = []
    for letter in "bcdef":
        usages.append((await events_of(alice_api, answer))[-2])
        answer = await ask_in(alice_api, conversation, letter * 800, max_tokens=400)
    end = (await events_of(alice_api, answer))[-1]
    assert end == {"finish_reason": "length"}
    messages = (await alice_api.get(f"/api/v1/conversations/{conversation}")).json()["messages"]
    cut = messages[-1]["kept_from"]
    assert cut is not None
    assert [m["role"] for m in messages if m["id"] == cut] == ["user"]
    assert max(usage["prompt_tokens"] for usage in usages) < 4096


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": " "},
        {"content": "x", "params": {"temperature": "hot"}},
        {"content": "x", "params": {"temprature": 1}},
        {"content": "x", "tools": [{"type": "function"}]},
    ],
)
async def test_ask_refuses_a_bad_body_and_saves_nothing(
    alice_api: AsyncClient, server: Server, body: dict[str, object]
) -> None:
    opened = await alice_api.post("/api/v1/conversations", {}, content_type=JSON)
    route = f"/api/v1/conversations/{opened.json()['id']}/messages"
    response = await alice_api.post(route, body, content_type=JSON)
    assert response.status_code == 422
    assert response.json()["detail"]
    assert not await Message.objects.aexists()


async def test_deleting_stops_what_is_being_written(
    alice_api: AsyncClient, server: Server, slow_llama: None
) -> None:
    conversation, _ = await ask(alice_api, max_tokens=4000)
    deleted = await alice_api.delete(f"/api/v1/conversations/{conversation}")
    assert deleted.status_code == 204
    assert not await Message.objects.aexists()


async def test_json_answers(alice_api: AsyncClient, server: Server) -> None:
    opened = await alice_api.post("/api/v1/conversations", {}, content_type=JSON)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
              "additionalProperties": False}  # fmt: skip
    asked = await alice_api.post(
        f"/api/v1/conversations/{opened.json()['id']}/messages",
        {
            "content": "A number",
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": schema},
            },
        },
        content_type=JSON,
    )
    answer = asked.json()["answer"]["id"]
    await events_of(alice_api, answer)
    content = (await alice_api.get(f"/api/v1/answers/{answer}")).json()["content"]
    assert content.startswith("{")
