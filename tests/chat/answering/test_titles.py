"""Titles by the model: what is asked, when, and when not."""

import asyncio
import time

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from pytest_django import Settings

from apps.chat.answering import prefill, runner, side_requests, titles
from apps.chat.models import Conversation
from apps.servers.models import Server
from tests.chat.conftest import ask, ask_in, events_of, told
from tests.chat.tools.tool_server import Delta, ToolServer, create_tool_server
from tests.waiting import until

ANSWER = "A kettle boils water."
SAID = '**Title: "Kettles and Stoves."**\nIt is about kettles.'


def say(text: str) -> list[Delta]:
    return [{"content": text}]


@pytest.fixture(autouse=True)
def _titles(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TITLES = True
    monkeypatch.setattr(titles, "START_AFTER_SECONDS", 0)


async def answered(api: AsyncClient, model: ToolServer, question: str = "What is it?") -> int:
    """A conversation after its first answer, and after what followed from that."""
    await asyncio.to_thread(create_tool_server, model)
    pk, answer = await ask(api, question)
    await events_of(api, answer)
    await settled(pk)
    return pk


async def settled(pk: int) -> None:
    await runner.wait_until_idle()
    if task := prefill.current_queue().tasks.get(pk):
        await asyncio.wait([task])


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (SAID, "Kettles and Stoves"),
        ("\n# Über Tee\n", "Über Tee"),
        ("«Le thé»", "Le thé"),
        ("Titel: Tee", "Tee"),
        ("All about **hot** `kettle.py`:", "All about hot kettle.py"),
        (" \n***\n", ""),
        ("x" * 81, ""),
    ],
)
def test_what_a_model_says_becomes_a_title(said: str, title: str) -> None:
    assert titles.parse_title(said) == title


@pytest.mark.django_db(transaction=True)
async def test_title_request_extends_the_prompt_of_the_answer(alice_api: AsyncClient) -> None:
    with ToolServer([say(ANSWER), say(SAID)]) as model:
        pk = await answered(alice_api, model)
        question, title = model.asked
    assert title["messages"] == [
        *question["messages"],
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": titles.QUESTION},
    ]
    conversation = await Conversation.objects.aget(pk=pk)
    assert conversation.title == "Kettles and Stoves"


@pytest.mark.django_db(transaction=True)
async def test_one_is_enough_and_what_a_person_calls_it_stays(alice_api: AsyncClient) -> None:
    with ToolServer([say(ANSWER), say(SAID), say(ANSWER)]) as model:
        pk = await answered(alice_api, model)
        await Conversation.objects.filter(pk=pk).aupdate(title="Mine")
        await events_of(alice_api, await ask_in(alice_api, pk, "And a stove?"))
        await settled(pk)
        assert len(model.asked) == 3
    assert (await Conversation.objects.aget(pk=pk)).title == "Mine"


@pytest.mark.django_db(transaction=True)
async def test_off_by_a_setting(alice_api: AsyncClient, settings: Settings) -> None:
    settings.TITLES = False
    with ToolServer([say(ANSWER), say(SAID)]) as model:
        await answered(alice_api, model)
        assert len(model.asked) == 1


@pytest.mark.django_db(transaction=True)
async def test_the_next_question_ends_it_and_lets_the_server_let_go_of_its_slot(
    alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_requests, "RELEASE_SECONDS", 0.4)
    with ToolServer([say(ANSWER)], hang_at=2) as model:
        await asyncio.to_thread(create_tool_server, model)
        pk, answer = await ask(alice_api, "What is it?")
        await events_of(alice_api, answer)
        await until(lambda: len(model.asked) >= 2)
        ended = time.monotonic()
        await events_of(alice_api, await ask_in(alice_api, pk, "And a stove?"))
        assert time.monotonic() - ended >= side_requests.RELEASE_SECONDS
        assert model.asked[2]["messages"][-1]["content"] == "And a stove?"
        await settled(pk)  # after the second answer it is asked for again
        assert [asked["messages"][-1]["content"] for asked in model.asked[1::2]] == [
            titles.QUESTION
        ] * 2


@pytest.mark.django_db(transaction=True)
async def test_what_is_typed_is_read_before_a_title_is_written(
    alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(titles, "START_AFTER_SECONDS", 60)
    monkeypatch.setattr(prefill, "MIN_TOKENS", 0)
    with ToolServer([say(ANSWER)]) as model:
        made = await asyncio.to_thread(create_tool_server, model)
        await Server.objects.filter(pk=made.pk).aupdate(kind="llama-server")  # else none is read
        pk, answer = await ask(alice_api, "What is it?")
        await events_of(alice_api, answer)
        queue = prefill.current_queue()
        await until(lambda: pk in queue.tasks)  # the title waits
        queue.prefill(await Conversation.objects.aget(pk=pk), "And a stove?")
        await until(lambda: len(model.asked) >= 2)
        assert model.asked[1]["messages"][-1]["content"] == "And a stove?"
        await settled(pk)


@pytest.mark.django_db
def test_the_page_asks_for_it(browser: Client, alice: User, demo_server: Server) -> None:
    conversation = told(alice, "What is it?", ANSWER)
    Conversation.objects.filter(pk=conversation.pk).update(title="What is it?")
    answer = f"/chat/answers/{conversation.active_leaf_id}/"
    assert "?asked=0" in browser.get(answer).content.decode()
    address = f"/chat/{conversation.pk}/title/?asked="
    assert "?asked=3" in browser.get(f"{address}2").content.decode()
    assert "hx-get" not in browser.get(f"{address}8").content.decode()  # it gives up
    Conversation.objects.filter(pk=conversation.pk).update(title="Kettles")
    news = browser.get(f"{address}2").content.decode()
    assert 'data-title="Kettles"' in news
    assert "hx-get" not in news
    assert 'data-title="Kettles"' in browser.get(answer).content.decode()  # it was quick


@pytest.mark.django_db
def test_of_nobody_elses_and_only_to_read(
    browser: Client, bobs_browser: Client, alice: User
) -> None:
    address = f"/chat/{told(alice, 'Hello', 'Hi').pk}/title/"
    assert bobs_browser.get(address).status_code == 404
    assert browser.post(address).status_code == 405
