"""What the database does not take costs its own row, and nothing else."""

import math
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.batch.handlers import (
    Handler,
    JobContext,
    RowInput,
    RowOutcome,
    Verdict,
    register_handler,
)
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.llm import errors
from apps.llm.events import Usage
from apps.servers.models import Server
from tests.batch.conftest import MakeBatch, run_until_done

pytestmark = pytest.mark.django_db(transaction=True)

BAD = 3


async def poisonous(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    """One row of the job is as its spec says."""
    given: dict[str, Any] = {"output": {"x": 1}, "raw": "{}", "reason": ""}
    verdict = Verdict.ACCEPTED
    if row.index == BAD:
        kind = context.spec["kind"]
        if kind == "infinite":
            given["output"] = {"x": math.inf}
        elif kind == "object":
            given["output"] = {"x": object()}
        elif kind == "nul":
            given |= {"reason": "a\0b", "raw": "a\0\ud800", "code": "judged"}
            verdict = Verdict.REJECTED
        elif kind == "tokens":
            given["usage"] = Usage(2**40, -1, 2**40)
        elif kind == "error":
            raise errors.BadRequest("The server says \0 and \ud800.")
    return RowOutcome(verdict, **given)


register_handler("tests.poisonous", Handler(poisonous))


async def rows_of(batch: Batch) -> dict[int, Item]:
    return {item.index: item async for item in batch.items.all()}


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("infinite", ItemStatus.FAILED, "The database does not take what the model wrote: "),
        ("object", ItemStatus.FAILED, "Object of type object is not JSON serializable"),
        ("nul", ItemStatus.REJECTED, "a\ufffdb"),
        ("tokens", ItemStatus.ACCEPTED, ""),
        ("error", ItemStatus.FAILED, "The server says \ufffd and ?."),
    ],
)
async def test_a_value_the_database_does_not_take_costs_its_row_alone(
    make_batch: MakeBatch, server: Server, kind: str, status: str, reason: str
) -> None:
    batch = await sync_to_async(make_batch)(30, handler="tests.poisonous", kind=kind)
    assert await run_until_done(server) is False
    rows = await rows_of(batch)
    bad = rows.pop(BAD)
    assert bad.status == status
    assert reason in bad.reason
    assert {(row.status, row.attempts) for row in rows.values()} == {(ItemStatus.ACCEPTED, 1)}
    assert (await Batch.objects.aget(pk=batch.pk)).status == BatchStatus.DONE
