"""A batch of texts for a trained classifier, at a real embedding server."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from apps.batch.errors import RowPostponed
from apps.batch.handlers import JobContext, RowInput
from apps.batch.models import Item
from apps.batch.pump.pump import run_pump
from apps.classifiers.models import Classifier
from apps.core.models import ApiKey
from apps.gateway.batches.batch_spec import BatchSpec
from apps.gateway.batches.request_row import run_row
from apps.gateway.models import Usage
from apps.gateway.pools.look_ups import forget_servers
from apps.gateway.usage import store
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import Target, hold_slot, refresh_server
from tests.gateway.batches.steps import check, finish, line, start
from tests.gateway.own_models.conftest import ASKED

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_counters", "loop_closed"),
]


@pytest.fixture
def key(alice: User) -> ApiKey:
    forget_servers()
    return ApiKey.issue(user=alice, name="laptop")[0]


def asked(custom_id: str, model: str, **values: Any) -> bytes:
    return line(custom_id, model=model, **{"messages": ASKED, **values})


async def test_a_classifier_answers_the_requests_of_a_batch(
    name: str, key: ApiKey, browser: Client, embedding_server: Server
) -> None:
    content = b"".join(
        (
            asked("a", name),
            asked("b", name, logprobs=True),
            asked("c", name, messages=_asking("What is the RATE?")),
            asked("d", name, n=2),
        )
    )
    batch = await in_db(lambda: check(start(key, content)))
    assert batch.status == "in_progress", batch.errors
    assert batch.job is not None
    assert (batch.job.server_id, batch.job.all_servers) == (embedding_server.pk, False)
    page = await sync_to_async(browser.get)(f"/servers/batches/{batch.job_id}/")
    assert name in page.content.decode()
    async with asyncio.timeout(200):
        await run_pump(embedding_server.pk)
    batch = await in_db(finish, batch)
    assert (batch.status, batch.completed, batch.failed) == ("completed", 3, 1)
    rows = [row async for row in Item.objects.filter(batch=batch.job).order_by("index")]
    answers = [json.loads(row.raw) for row in rows]
    assert [one["choices"][0]["message"]["content"] for one in answers[:2]] == ["hello", "hello"]
    assert (answers[0]["model"], answers[0]["usage"]) == (name, None)
    assert answers[1]["choices"][0]["logprobs"]["content"][0]["token"] == "hello"
    assert rows[3].output == {"status_code": 400}
    assert "one answer" in rows[3].raw
    await in_db(store.store_usage)
    usage = await Usage.objects.aget()
    assert (usage.model, usage.requests, usage.failed) == (name, 4, 1)
    assert usage.completion_reports == 0


async def test_its_texts_take_the_slot_that_the_pump_leaves(
    name: str, key: ApiKey, embedding_server: Server
) -> None:
    """A pump that held the last slot for a row would wait for itself."""
    server = await refresh_server(embedding_server)
    content = b"".join(asked(text, name, messages=_asking(text)) for text in ("RATE", "CARD"))
    batch = await in_db(lambda: check(start(key, content)))
    async with AsyncExitStack() as stack, asyncio.timeout(200):
        for _ in range(server.slots - 1):
            await stack.enter_async_context(hold_slot(server, lane=Lane.AGENT))
        await run_pump(server.pk)
    assert await Item.objects.filter(batch=batch.job, status="accepted").acount() == 2


async def test_a_classifier_that_cannot_answer_now_postpones_its_requests(
    name: str, key: ApiKey, topics: Classifier, embedding_server: Server
) -> None:
    batch = await in_db(lambda: check(start(key, asked("a", name))))
    assert batch.job is not None
    await Server.objects.filter(pk=embedding_server.pk).aupdate(base_url="http://127.0.0.1:9/v1")
    spec = BatchSpec(**{**batch.job.spec, "lane": "batch"})
    row = RowInput(0, 1, {"custom_id": "a", "body": {"model": name, "messages": _asking("New")}})
    context = JobContext(batch.job.pk, spec, "any", Target(embedding_server, "").client)
    with pytest.raises(RowPostponed, match="embedding server could not answer") as postponed:
        await run_row(row, context)
    assert postponed.value.wait_s > 0
    await topics.adelete()
    gone = await run_row(row, context)
    assert gone.output == {"status_code": 404}


def _asking(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def refusal(key: ApiKey, content: bytes, **values: Any) -> tuple[str, str]:
    """Return code and sentence of the error for which a batch is not run."""
    batch = check(start(key, content, **values))
    assert batch.status == "failed"
    [error] = batch.errors
    return error["code"], error["message"]


def test_a_classifier_that_is_not_there_or_not_allowed_is_refused(
    name: str, key: ApiKey, bob: User, topics: Classifier
) -> None:
    theirs, _ = ApiKey.issue(user=bob, name="desk")
    assert refusal(theirs, asked("a", name)) == (
        "model_not_found",
        f"You have no classifier “{name}”.",
    )
    embeddings = asked("a", name).replace(b"/v1/chat/completions", b"/v1/embeddings")
    code, detail = refusal(key, embeddings, endpoint="/v1/embeddings")
    assert (code, "answers /v1/chat/completions" in detail) == ("wrong_route", True)
    ApiKey.objects.filter(pk=key.pk).update(allowed_models=["qwen"])
    assert refusal(key, asked("a", name))[0] == "model_not_allowed"
    ApiKey.objects.filter(pk=key.pk).update(allowed_models=[])
    Classifier.objects.filter(pk=topics.pk).update(current=None)
    assert refusal(key, asked("a", name))[0] == "not_trained"
