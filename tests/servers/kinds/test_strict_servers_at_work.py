"""Every use of a server that refuses all that OpenAI does not know, and no setting for it."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from pytest_django import Settings

from apps.batch.models import Item, ItemStatus
from apps.batch.pump.pump import run_pump
from apps.chat.answering import prefill, runner, summaries
from apps.chat.models import Message, Status, Summary, SummaryState
from apps.classifiers.prediction import chat_tests
from apps.classifiers.training import trainer
from apps.generation.job_request import JobRequest
from apps.generation.recipe.parse import parse
from apps.generation.rows import personas
from apps.generation.services import create_job
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import choose_target
from tests.chat.conftest import ask, ask_in, events_of, open_with, program_of, text_of, told
from tests.classifiers import factories
from tests.generation.conftest import new_job
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Standin

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]


@pytest.fixture(scope="module")
def strict(llama: LlamaProcess) -> Iterator[Standin]:
    with Standin("strict", llama) as standin:
        yield standin


@pytest.fixture
def server(db: None, strict: Standin) -> Server:
    server = server_at(strict)
    for use in (Use.CHAT, Use.GENERATION):
        DefaultServer.objects.create(use=use, server=server)
    return server


def refusals(standin: Standin, before: int) -> int:
    return sum(asked["status"] == 400 for asked in standin.asked[before:])


@pytest.fixture
def alice_api(alice: User, monkeypatch: pytest.MonkeyPatch) -> AsyncClient:
    monkeypatch.setattr("apps.chat.answering.runner.LINGER_SECONDS", 0)
    return program_of(alice)


async def test_chat(alice_api: AsyncClient, server: Server) -> None:
    _, answer = await ask(alice_api, max_tokens=8)
    events = await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert (saved.status, saved.error_detail) == (Status.COMPLETE, "")
    assert text_of(events) == saved.content != ""


async def test_a_job(alice: User, server: Server, strict: Standin) -> None:
    before = len(strict.asked)
    job = await in_db(lambda: new_job(alice, server, rows=3, params={"max_tokens": 60}))
    await run_pump(server.pk)
    rows = [item async for item in Item.objects.filter(batch=job.batch_id)]
    assert all(row.status in {ItemStatus.ACCEPTED, ItemStatus.REJECTED} for row in rows), [
        row.reason for row in rows
    ]
    answers = [asked for asked in strict.asked[before:] if "chat" in asked["path"]]
    refused = [asked for asked in answers if asked["status"] == 400]
    assert len(refused) <= 3  # at most once for each row that was in flight, and never again
    assert all("max_tokens" in asked["fields"] for asked in refused)


async def test_a_judge(alice: User, server: Server) -> None:
    columns = [
        {"name": "text", "kind": "text", "prompt": "Write a word."},
        {"name": "judge", "kind": "judge", "criteria": [{"name": "quality", "max": 3}]},
    ]
    recipe = parse({"columns": columns, "params": {"max_tokens": 60}})
    job = await in_db(
        lambda: create_job(
            JobRequest(name="J", rows=2, seed=7, recipe=recipe), owner=alice, server=server
        )
    )
    await run_pump(server.pk)
    rows = [item async for item in Item.objects.filter(batch=job.batch_id)]
    assert {row.status for row in rows} <= {ItemStatus.ACCEPTED, ItemStatus.REJECTED}, [
        row.reason for row in rows
    ]


async def test_personas(alice: User, server: Server, strict: Standin) -> None:
    before = len(strict.asked)
    with suppress(personas.NoPersonas):  # the model writes nonsense
        await personas.write(choose_target(server, "m"), "tests", 2, person=alice.pk)
    assert strict.asked[-1]["status"] == 200
    assert refusals(strict, before) == 1


async def test_a_title(
    alice_api: AsyncClient,
    server: Server,
    strict: Standin,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.TITLES = True
    monkeypatch.setattr("apps.chat.answering.titles.START_AFTER_SECONDS", 0)
    before = len(strict.asked)
    conversation, answer = await ask(alice_api, max_tokens=8)
    await events_of(alice_api, answer)
    await runner.wait_until_idle()
    if task := prefill.current_queue().tasks.get(conversation):
        await asyncio.wait([task])
    asked = [asked for asked in strict.asked[before:] if "chat" in asked["path"]]
    assert [one["status"] for one in asked] == [400, 200, 400, 200]
    refused = [set(one["fields"]) - set(asked[-1]["fields"]) for one in asked[::2]]
    # A title is written without thinking. No field is refused twice.
    assert refused == [{"max_tokens"}, {"chat_template_kwargs", "reasoning_effort"}]


async def test_a_summary(alice: User, server: Server, strict: Standin) -> None:
    before = len(strict.asked)
    turns = ("one", "1 said", "two", "2 said")
    conversation = await in_db(lambda: told(alice, *turns))
    upto = await conversation.messages.aget(content="2 said")
    summary = await Summary.objects.acreate(upto=upto)
    await summaries.write(summary.pk)
    await summary.arefresh_from_db()
    assert summary.state == SummaryState.READY, summary.text
    assert refusals(strict, before) == 1
    assert strict.asked[-1]["status"] == 200


async def test_chat_with_tools(alice_api: AsyncClient, server: Server) -> None:
    answer = await ask_in(alice_api, await open_with(alice_api, calculator="always"), max_tokens=8)
    await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert saved.error_detail == ""


async def test_a_classifier_and_its_chat_baseline(
    alice: User,
    server: Server,
    llama_embeddings: LlamaProcess,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.CLASSIFIERS_DIR = tmp_path
    monkeypatch.setattr(trainer, "STRENGTHS", (3.0, 10.0, 30.0))
    monkeypatch.setattr(trainer, "FOLDS", 3)
    with Standin("strict", llama_embeddings) as embeddings:
        target = await in_db(server_at, embeddings, name="Embeddings")
        await in_db(lambda: DefaultServer.objects.create(use=Use.EMBEDDINGS, server=target))
        made = await asyncio.to_thread(factories.trained, alice)
    run = await in_db(factories.newest, made)
    test = await in_db(
        lambda: chat_tests.start_chat_test(run, server=server, model="m", rows=4, shots=1)
    )
    await run_pump(server.pk)
    rows = [item async for item in Item.objects.filter(batch=test.batch_id)]
    assert {row.status for row in rows} <= {ItemStatus.ACCEPTED, ItemStatus.REJECTED}, [
        row.reason for row in rows
    ]
