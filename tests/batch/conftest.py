"""A job of short rows and pumps that run in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.batch.handlers import (
    Handler,
    JobContext,
    PostProcess,
    RowInput,
    RowOutcome,
    Verdict,
    register_handler,
)
from apps.batch.models import Batch
from apps.batch.pump.pump import run_pump
from apps.batch.services import BatchOptions, create_batch
from apps.batch.store import leases
from apps.batch.store.leases import Lease
from apps.llm.client import ChatRequest, close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.waiting import until


@pytest.fixture(autouse=True)
async def _closed_connections() -> AsyncIterator[None]:
    yield
    await close_clients()
    await close_async_redis()


async def echo(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    """One short request to the real server; the answer is accepted whatever it is."""
    request = ChatRequest(
        context.model,
        [{"role": "user", "content": f"Row {row.index}"}],
        context.spec.get("max_tokens", 8),
        {"seed": row.index},
    )
    completion = await row.draft.complete(context.client, request)
    return RowOutcome(
        Verdict.ACCEPTED,
        output={"index": row.index},
        raw=completion.text,
        usage=completion.usage,
        prompt=f"Row {row.index}",
    )


def mistaken(batch_id: int, spec: dict[str, Any]) -> PostProcess:
    async def look() -> None:
        raise ZeroDivisionError

    return look


register_handler("tests.echo", Handler(echo))
register_handler("tests.mistaken", Handler(echo, post_process="tests.batch.conftest.mistaken"))

MakeBatch = Callable[..., Batch]


@pytest.fixture
def make_batch(alice: User, server: Server) -> MakeBatch:
    def make(rows: int = 20, *, handler: str = "tests.echo", weight: int = 1, **spec: Any) -> Batch:
        return create_batch(
            owner=alice,
            server=server,
            handler=handler,
            spec=spec,
            inputs=rows,
            options=BatchOptions(weight=weight),
        )

    return make


async def run_until_done(server: Server) -> bool:
    async with asyncio.timeout(200):
        return await run_pump(server.pk)


async def until_stored(condition: Callable[[], object]) -> None:
    """Wait until `condition` is true of the database; it runs in the thread of its queries."""
    await until(lambda: in_db(condition))


@pytest.fixture
def lease(server: Server) -> Lease:
    """The lease of the server's pump, held by this test."""
    held = leases.acquire(server.pk)
    assert held is not None
    return held
