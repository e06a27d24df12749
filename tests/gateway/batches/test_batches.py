"""Batches of programs, with OpenAI's SDK as it is, at the real llama.cpp."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import openai  # noqa: TID251 - a program that asks us
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from apps.batch.models import Item
from apps.batch.pump.pump import run_pump
from apps.batch.services import pause_batch, resume_batch
from apps.core.models import KeyScope
from apps.gateway.models import FileBatch
from apps.gateway.pools.look_ups import forget_servers
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.gateway.batches import steps
from tests.gateway.batches.steps import CHAT, line
from tests.gateway.sdk import sdk_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_counters"),
]


@pytest.fixture
async def sdk(alice: User, server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    await refresh_server(server)
    forget_servers()
    async with await sdk_of(alice) as client:
        yield client


async def create(sdk: openai.AsyncOpenAI, content: bytes, **values: Any) -> Any:
    file = await sdk.files.create(file=("in.jsonl", content), purpose="batch")
    given: Any = {"endpoint": CHAT, "completion_window": "24h", **values}
    return await sdk.batches.create(input_file_id=file.id, **given)


async def stored(batch: Any) -> FileBatch:
    return await FileBatch.objects.select_related("job").aget(key=batch.id.removeprefix("batch_"))


async def check(batch: Any) -> FileBatch:
    return await in_db(steps.check, await stored(batch))


async def pump(server: Server) -> None:
    async with asyncio.timeout(200):
        await run_pump(server.pk)


async def results(sdk: openai.AsyncOpenAI, file_id: str) -> list[Any]:
    content = (await sdk.files.content(file_id)).content
    return [json.loads(line) for line in content.splitlines()]


async def test_a_batch_runs_to_its_results(sdk: openai.AsyncOpenAI, server: Server) -> None:
    content = b"".join(line(name) for name in "abc") + line("d", messages=7)
    made = await create(sdk, content, metadata={"night": "1"})
    assert (made.status, made.metadata) == ("validating", {"night": "1"})
    batch = await check(made)
    begun = await sdk.batches.retrieve(made.id)
    assert (begun.status, begun.request_counts and begun.request_counts.total) == ("in_progress", 4)
    await pump(server)
    assert (await sdk.batches.retrieve(made.id)).status == "finalizing"
    await in_db(steps.finish, batch)
    done = await sdk.batches.retrieve(made.id)
    assert (done.status, bool(done.completed_at), done.model_extra) == ("completed", True, {})
    assert done.request_counts is not None
    counts = done.request_counts
    assert (counts.total, counts.completed, counts.failed) == (4, 3, 1)
    assert done.output_file_id
    lines = await results(sdk, done.output_file_id)
    assert [line["custom_id"] for line in lines] == ["a", "b", "c"]
    rows = [row.raw async for row in Item.objects.filter(batch=batch.job).order_by("index")]
    assert [line["response"]["body"] for line in lines] == [json.loads(raw) for raw in rows[:3]]
    assert done.error_file_id
    [failed] = await results(sdk, done.error_file_id)
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("d", 400)
    assert failed["response"]["body"]["error"]["message"]


async def test_the_errors_of_a_file_have_the_numbers_of_its_lines(
    sdk: openai.AsyncOpenAI,
) -> None:
    await check(made := await create(sdk, line("a") + b"\xff\n" + line("a")))
    failed = await sdk.batches.retrieve(made.id)
    assert (failed.status, bool(failed.failed_at)) == ("failed", True)
    assert failed.errors is not None
    errors = [(one.line, one.code) for one in failed.errors.data or []]
    assert errors == [(2, "invalid_json_line"), (3, "duplicate_custom_id")]


async def test_a_cancelled_batch_lists_what_was_not_done(sdk: openai.AsyncOpenAI) -> None:
    early = await create(sdk, line("a"))
    assert (await sdk.batches.cancel(early.id)).status == "cancelled"
    batch = await check(made := await create(sdk, line("a") + line("b")))
    assert (await sdk.batches.cancel(made.id)).status == "cancelling"
    await in_db(steps.finish, batch)
    cancelled = await sdk.batches.retrieve(made.id)
    assert (cancelled.status, cancelled.output_file_id) == ("cancelled", None)
    assert cancelled.cancelled_at
    assert cancelled.error_file_id
    lines = await results(sdk, cancelled.error_file_id)
    assert [line["error"]["code"] for line in lines] == ["batch_cancelled"] * 2
    with pytest.raises(openai.ConflictError, match="Only one in progress"):
        await sdk.batches.cancel(made.id)


async def test_a_paused_batch_goes_on(sdk: openai.AsyncOpenAI, server: Server) -> None:
    batch = await check(made := await create(sdk, line("a")))
    assert batch.job is not None
    await in_db(pause_batch, batch.job)
    await pump(server)
    assert (await sdk.batches.retrieve(made.id)).status == "in_progress"
    await in_db(resume_batch, batch.job)
    await pump(server)
    await in_db(steps.finish, batch)
    assert (await sdk.batches.retrieve(made.id)).status == "completed"


async def test_batches_are_their_owners_alone_and_listed_newest_first(
    sdk: openai.AsyncOpenAI, bob: User
) -> None:
    made = [await create(sdk, line("a")) for _ in range(3)]
    listed = [batch.id async for batch in sdk.batches.list(limit=2)]
    assert listed == [batch.id for batch in reversed(made)]
    async with await sdk_of(bob) as other:
        assert (await other.batches.list()).data == []
        for ask in (other.batches.retrieve, other.batches.cancel):
            with pytest.raises(openai.NotFoundError, match="You have no batch"):
                await ask(made[0].id)
        with pytest.raises(openai.NotFoundError, match="You have no batch"):
            await other.batches.list(after=made[0].id)
        with pytest.raises(openai.NotFoundError, match="You have no file"):
            await other.batches.create(
                input_file_id=made[0].input_file_id, endpoint=CHAT, completion_window="24h"
            )
    assert (await sdk.batches.retrieve(made[0].id)).status == "validating"


async def test_refusals_are_the_sdks_errors(
    sdk: openai.AsyncOpenAI, alice: User, settings: Settings
) -> None:
    with pytest.raises(openai.BadRequestError, match="No batch runs at"):
        await create(sdk, line("a"), endpoint="/v1/images/generations")
    with pytest.raises(openai.BadRequestError, match="a time like"):
        await create(sdk, line("a"), completion_window="soon")
    with pytest.raises(openai.BadRequestError, match="`metadata` has"):
        await create(sdk, line("a"), metadata={"a": "x" * 513})
    async with await sdk_of(alice, KeyScope.READ) as reader:
        with pytest.raises(openai.PermissionDeniedError, match="read only"):
            await reader.batches.cancel("batch_x")
    settings.LIMITS = {**settings.LIMITS, "batches": 0}
    with pytest.raises(openai.RateLimitError, match="batches that are not done"):
        await create(sdk, line("a"))
