"""A job that replaces rows: what comes out has the values that each row was asked for."""

import csv
import io
import itertools
import json
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.batch.models import Item, ItemStatus
from apps.batch.pump.pump import run_pump
from apps.generation.exports import to_dataset
from apps.generation.exports.row_fields import full_row
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.recipe.spec import Spec
from apps.generation.rows.replay import first_request
from apps.generation.rows.samplers import RowSeed
from apps.generation.services import create_job
from apps.llm.client import ChatRequest, Client, Completion, close_clients
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server

MESSAGES: dict[str, Any] = {
    "prompt": "A {{ label }} message about {{ topic }}.",
    "attributes": {"label": ["spam", "ham"], "topic": ["bank", "shop", "job", "love"]},
}


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model repeats what it was asked; a third of its answers is cut off."""
    numbers = itertools.count(1)

    async def complete(
        self: ResumableCompletion, client: Client, request: ChatRequest
    ) -> Completion:
        number = next(numbers)
        text = f"{request.messages[-1]['content']} #{number}"
        finish = "stop" if number % 3 else "length"
        return Completion(text, "", finish, Usage(10, 0, 10))

    monkeypatch.setattr(ResumableCompletion, "complete", complete)


@async_to_sync
async def work(server: Server) -> None:
    await run_pump(server.pk)
    await close_clients()
    await close_async_redis()


def job_of(alice: User, server: Server, rows: int, recipe: dict[str, Any] = MESSAGES) -> Job:
    return create_job(
        JobRequest(name="Messages", rows=rows, seed=7, recipe=parse(recipe), refill=True),
        owner=alice,
        server=server,
    )


def as_asked(row: dict[str, Any]) -> bool:
    return str(row["text"]).startswith(f"A {row['label']} message about {row['topic']}. #")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("echo")
async def test_every_file_has_the_labels_that_were_asked_for(
    async_browser: AsyncClient, alice: User, server: Server
) -> None:
    job = await sync_to_async(job_of)(alice, server, 150)
    await sync_to_async(work)(server)
    replacements = Item.objects.filter(batch_id=job.batch_id, input__isnull=False)
    assert await replacements.filter(status=ItemStatus.ACCEPTED).acount() > 25

    async def file(kind: str) -> bytes:
        address = f"/api/v1/jobs/{job.pk}/export?format={kind}"
        answer: Any = await async_browser.get(address)
        return b"".join([part async for part in answer.streaming_content])

    lines = [json.loads(line) for line in (await file("jsonl")).splitlines()]
    assert len(lines) == 150
    assert all(map(as_asked, lines))
    rows = list(csv.DictReader(io.StringIO((await file("csv")).decode("utf-8-sig"))))
    assert len(rows) == 150
    assert all(map(as_asked, rows))
    assert all(map(as_asked, pq.read_table(io.BytesIO(await file("parquet"))).to_pylist()))
    for line in (await file("chat")).splitlines():
        asked, answered = json.loads(line)["messages"]
        assert answered["content"].startswith(asked["content"])
    dataset = await sync_to_async(to_dataset.to_dataset)(
        job=job, name="Made", text_field="text", label_field="label"
    )
    async for text, label in dataset.examples.values_list("text", "label"):
        assert text.startswith(f"A {label} message")
    shown = await async_browser.get(f"/api/v1/jobs/{job.pk}/rows?status=accepted&limit=300")
    assert all(as_asked(row["output"]) for row in shown.json()["items"])


@pytest.mark.django_db
def test_rows_from_before_values_were_kept_are_read_as_they_were_asked(
    alice: User, server: Server
) -> None:
    """Such a row holds the answer alone."""
    job = job_of(alice, server, 20)
    spec = job.spec
    for place in range(20):
        old = Item(batch=job.batch, index=100 + place, input={"for": place})
        asked = first_request(spec.recipe, RowSeed(old.index, spec.seed, place)).messages[-1][
            "content"
        ]
        old.output = {"text": f"{asked} #1"}
        assert as_asked(full_row(spec, old))


def test_a_category_left_out_or_left_empty_is_neither_exported_nor_made_up() -> None:
    recipe = parse(
        {
            "columns": [
                {"name": "a", "values": ["x"]},
                {"name": "b", "values": ["y"], "condition": "a == 'z'"},
                {"name": "c", "values": ["only a help"], "keep": False},
            ],
            "prompt": "Write about {{ a }} {{ c }}.",
        }
    )
    spec = Spec(recipe, 7, "")
    assert recipe.field_names == ["text", "a", "b"]
    old = full_row(spec, Item(index=0, output={"text": "x"}))
    assert old == {"text": "x", "a": "x", "b": None}


names = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def chains(row_seed: st.DrawFn) -> tuple[dict[str, int], int, int, list[int]]:
    """Quotas, the rows wanted, a seed, and how often each of them is rejected."""
    quotas = row_seed(st.dictionaries(names, st.integers(0, 6), min_size=1, max_size=4))
    total = sum(quotas.values())
    rows = total if len(quotas) == 4 else total + row_seed(st.integers(0, 6))
    rejected = row_seed(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    return quotas, rows, row_seed(st.integers(0, 2**31 - 1)), rejected


@settings(max_examples=60, deadline=None)
@given(chains())
def test_quotas_come_out_whatever_is_replaced(
    chain: tuple[dict[str, int], int, int, list[int]],
) -> None:
    """Each row wanted has one chain of tries, and its last one counts."""
    quotas, rows, seed, rejected = chain
    if not rows:
        return
    recipe = parse(
        {
            "prompt": "A {{ label }} of {{ other }}.",
            "attributes": {"label": ["a", "b", "c", "d"], "other": ["1", "2", "3"]},
            "quotas": {"label": quotas},
        },
        rows=rows,
    )
    spec = Spec(recipe, seed, "")
    index, out = rows, []
    for place, times in enumerate(rejected):
        item = Item(index=place)
        for _ in range(times):
            item, index = Item(index=index, input={"for": place}), index + 1
        replaces = place if item.input else None
        asked = first_request(recipe, RowSeed(item.index, seed, replaces)).messages[-1]["content"]
        item.output = {"text": asked}
        row = full_row(spec, item)
        assert asked == f"A {row['label']} of {row['other']}."
        out.append(row["label"])
    counts = Counter(out)
    if any(quotas.values()):
        assert {value: counts[value] for value in quotas} == quotas
