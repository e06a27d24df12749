"""Rows of a program's batch go on where their slot was taken."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.batch.models import Item
from apps.batch.pump.pump import run_pump
from apps.batch.services import create_batch
from apps.core.models import ApiKey
from apps.gateway.batches.batch_spec import HANDLER, BatchSpec
from apps.llm.permits import Lane
from apps.servers.models import Server
from apps.servers.services import hold_slot, refresh_server
from tests.conftest import SLOTS
from tests.gateway.continuing.cut_answers import BODIES, CutAnswer, without_times

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed", "idle_slots", "no_counters"),
]


@pytest.mark.parametrize("path", BODIES)
async def test_a_row_ends_as_one_that_kept_its_slot(
    program: httpx2.AsyncClient, server: Server, alice: User, path: str
) -> None:
    seen = await refresh_server(server)
    plain = (await program.post(path, json=BODIES[path])).json()
    key = await ApiKey.objects.aget()
    batch = await sync_to_async(create_batch)(
        owner=alice,
        server=server,
        handler=HANDLER,
        spec=BatchSpec(key.pk, path, 600, time.time() + 3600).as_dict(),
        inputs=[{"custom_id": "a", "body": {**BODIES[path], "model": seen.model_ids[0]}}],
    )
    CutAnswer.cuts, CutAnswer.is_cut = 1, asyncio.Event()
    pump = asyncio.create_task(run_pump(server.pk))
    await asyncio.wait_for(CutAnswer.is_cut.wait(), 60)
    async with AsyncExitStack() as people:
        for person in range(SLOTS):
            slot = hold_slot(seen, lane=Lane.INTERACTIVE, person=100 + person)
            await people.enter_async_context(slot)
        CutAnswer.cuts = 0
    await asyncio.wait_for(pump, 200)
    row = await Item.objects.aget(batch=batch)
    assert row.status == "accepted"
    answer: dict[str, Any] = json.loads(row.raw)
    assert without_times(answer) == without_times(plain)
    assert row.completion_tokens == 600
    assert 300 < CutAnswer.chunks < 550  # those of the second part alone
