"""The beginning that a job's rows share is processed on one slot and restored on the others."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.batch.handlers import Handler, JobContext, RowInput, RowOutcome, Verdict, register_handler
from apps.batch.models import Batch, Item
from apps.batch.services import create_batch
from apps.llm.client import ChatRequest
from apps.llm.thinking import ThinkingSupport
from apps.runtime.async_db import in_db
from apps.servers.models import Server, SlotFile, SlotRestores
from tests.batch.conftest import run_until_done
from tests.conftest import create_server
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)

SYSTEM = "You name the days of the week, one for each number. " * 20
ROWS = 12


def request_of(model: str, question: str) -> ChatRequest:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    return ChatRequest(model, messages, 8, {"seed": 1})  # type: ignore[arg-type]


def shared(spec: dict[str, Any], model: str, thinking: ThinkingSupport) -> ChatRequest:
    return request_of(model, ".")


async def run_row(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    request = request_of(context.model, f"Number {row.index}")
    completion = await row.draft.complete(context.client, request)
    return RowOutcome(Verdict.ACCEPTED, raw=completion.text, usage=completion.usage)


register_handler("tests.shared", Handler(run_row, shared_request=shared))


@pytest.fixture
def saving_server(saving_llama: LlamaProcess) -> Server:
    saving_llama.restart()
    return create_server(saving_llama, "Saving")


@sync_to_async
def make_batch(owner: User, server: Server) -> Batch:
    return create_batch(owner=owner, server=server, handler="tests.shared", spec={}, inputs=ROWS)


async def uncached(batch: Batch) -> list[int]:
    rows: list[Item] = [row async for row in batch.items.order_by("index")]
    assert {row.status for row in rows} == {"accepted"}
    return [row.prompt_tokens - row.cached_tokens for row in rows]


async def test_no_row_processes_what_all_share(saving_server: Server, alice: User) -> None:
    batch = await make_batch(alice, saving_server)
    await run_until_done(saving_server)
    assert max(await uncached(batch)) < 50 < len(SYSTEM)
    assert (await in_db(SlotRestores.objects.get)).count == 1
    await in_db(SlotFile.objects.get)


async def test_a_second_job_restores_it_after_a_restart(
    saving_server: Server, saving_llama: LlamaProcess, alice: User
) -> None:
    for count in (1, 3):
        batch = await make_batch(alice, saving_server)
        await run_until_done(saving_server)
        assert max(await uncached(batch)) < 50
        assert (await in_db(SlotRestores.objects.get)).count == count
        saving_llama.restart()


async def test_without_slot_files_each_slot_processes_it(server: Server, alice: User) -> None:
    batch = await make_batch(alice, server)
    await run_until_done(server)
    assert max(await uncached(batch)) > len(SYSTEM)
    assert not await in_db(SlotRestores.objects.exists)
