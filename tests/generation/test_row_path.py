"""The modules that run for one generated row: it is read in one sitting."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.contrib.auth.models import User
from django.db import connections

from apps.batch.models import Item, ItemStatus
from apps.batch.pump import state as pump_state
from apps.batch.pump.pump import run_pump
from apps.generation.job_request import JobRequest
from apps.generation.recipe.parse import parse
from apps.generation.services import create_job
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.tools.tool_server import ToolServer, create_tool_server
from tests.repository.module_trace import ModuleTrace

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]

# Modules of generation and batch that run for the second row of a typical recipe, from the choice
# of the pump to the commit; what is computed once for a job is not among them. If there are more,
# merge what always goes together and keep what is rare behind a branch.
MOST_MODULES = 20

TICKETS: dict[str, Any] = {
    "system": "You write support tickets.",
    "columns": [
        {"name": "topic", "kind": "category", "values": ["printer", "mail", "login"]},
        {"name": "pages", "kind": "number", "min": 1, "max": 9},
        {"name": "day", "kind": "date", "from": "2026-01-01", "to": "2026-01-31"},
        {
            "name": "ticket",
            "kind": "structured",
            "prompt": "A ticket of {{ day }} about {{ topic }}, {{ pages }} pages.",
            "schema": {
                "type": "object",
                "required": ["title", "body"],
                "properties": {
                    "title": {"type": "string", "maxLength": 80},
                    "body": {"type": "string"},
                },
            },
        },
    ],
}
ANSWERS = [
    {"title": "Blank pages", "body": "The printer on the second floor prints blank pages."},
    {"title": "No mail", "body": "Since this morning no message has arrived at all."},
]


@pytest.fixture
def writer() -> Iterator[ToolServer]:
    with ToolServer([[{"content": json.dumps(answer)}] for answer in ANSWERS]) as process:
        yield process


@pytest.fixture
def writer_server(db: None, writer: ToolServer) -> Server:
    return create_tool_server(writer)


async def test_a_row_is_read_in_one_sitting(
    alice: User, writer_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 60.0)  # once a second, and not for a row
    job = await sync_to_async(create_job)(
        JobRequest(name="Tickets", rows=2, seed=7, recipe=parse(TICKETS), near=0.8, width=1),
        owner=alice,
        server=writer_server,
    )
    with ModuleTrace() as trace:
        async with ThreadSensitiveContext():  # a thread of its own, which is traced
            await run_pump(writer_server.pk)
            await in_db(connections.close_all)
    accepted = Item.objects.filter(batch_id=job.batch_id, status=ItemStatus.ACCEPTED)
    assert await accepted.acount() == 2
    modules = trace.modules_between("FairQueue.pick", "ActiveJobs.row_written")
    row = sorted(m for m in modules if m.startswith(("apps.generation.", "apps.batch.")))
    assert "apps.generation.rows.generate_row" in row
    assert "apps.batch.store.row_writes" in row
    assert len(row) <= MOST_MODULES, "\n".join(row)
