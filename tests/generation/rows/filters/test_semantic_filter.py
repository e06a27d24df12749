"""Near duplicates by meaning while a job runs."""

import asyncio
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.pump import post_processing
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation import services
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows.semantic_filter import KnownTexts, SemanticFilter
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.batch.conftest import run_until_done
from tests.generation.conftest import finish
from tests.generation.views.test_editor import FORM
from tests.markup import one_line
from tests.waiting import until

UNSEEN: dict[str, Any] = {
    "state": "unknown",
    "checked_at": None,
    "next_check_at": None,
    "failed_checks": 0,
}
PLAIN: dict[str, Any] = {"prompt": "Write a word.", "params": {"max_tokens": 4}}


def job_of(owner: User, server: Server, texts: list[str], **values: Any) -> Job:
    """All rows are accepted and none was compared: as a worker leaves them that was killed."""
    given: dict[str, Any] = {"name": "Alike", "rows": len(texts), "seed": 1, "meaning": 0.999}
    recipe = parse(values.pop("recipe", PLAIN))
    job = services.create_job(
        JobRequest(recipe=recipe, **(given | values)), owner=owner, server=server
    )
    for index, text in enumerate(texts):
        finish(job, index, ItemStatus.ACCEPTED, output={"text": text}, fingerprint=f"{index}")
    return job


def said(job: Job) -> list[str]:
    items = Item.objects.filter(batch_id=job.batch_id).order_by("index")
    return [item.reason or item.status for item in items]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_closed_connections")
class TestInAJob:
    async def test_a_job_is_done_when_its_rows_were_compared(
        self, alice: User, server: Server, embedding_server: Server
    ) -> None:
        rows = [ExampleRow("A real question", "x", split="test"), ExampleRow("Other", "x")]
        real = await in_db(
            lambda: create_dataset(owner=alice, name="Real", rows=rows, origin="a test")
        )
        texts = ["The same", "A lamp", "The same", "A seed", "A real question", "The same", ""]
        seeds = [{"name": "like", "kind": "seed", "rows": [{"text": "A seed"}], "keep": False}]
        column = {"name": "text", "kind": "text", "prompt": "Write a word."}
        recipe = {"columns": [*seeds, column]}
        job = await in_db(lambda: job_of(alice, server, texts, recipe=recipe, test_dataset=real.pk))
        items = Item.objects.filter(batch_id=job.batch_id)
        await items.filter(index=5).aupdate(reviewed=True)
        await run_until_done(server)
        assert await in_db(said, job) == [
            *("accepted", "accepted"),
            "About 100% similar in meaning to row 1.",
            "About 100% similar in meaning to seed row 1.",
            "About 100% similar in meaning to row 1 of the test set.",
            *("accepted", "accepted"),
        ]
        codes = [item.code async for item in items.filter(status="rejected").order_by("index")]
        assert codes == ["near_meaning", "seed_meaning", "contaminated"]
        assert (await Batch.objects.aget()).status == BatchStatus.DONE

    async def test_another_row_is_made_for_one_that_goes(
        self, alice: User, server: Server, embedding_server: Server
    ) -> None:
        job = await in_db(lambda: job_of(alice, server, ["The same", "The same"], refill=True))
        await run_until_done(server)
        made = Item.objects.filter(batch_id=job.batch_id, index__gt=1)
        assert await made.acount() > 0
        assert (await made.order_by("index").afirst()).original_index == 1  # type: ignore[union-attr]
        assert (await Batch.objects.aget()).status in {BatchStatus.DONE, BatchStatus.FAILED}

    async def test_without_the_embedding_server_nothing_is_lost(
        self,
        alice: User,
        server: Server,
        embedding_server: Server,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(post_processing, "BLOCKED_RETRY_SECONDS", 0.2)
        job = await in_db(lambda: job_of(alice, server, ["The same", "The same", "A lamp"]))
        await Item.objects.filter(batch_id=job.batch_id, index=2).aupdate(
            status=ItemStatus.PENDING, output=None, fingerprint=None, finished=None
        )
        away = Server.objects.filter(pk=embedding_server.pk)
        address = embedding_server.base_url
        await away.aupdate(base_url="http://127.0.0.1:9", **UNSEEN)
        pump = asyncio.create_task(run_until_done(server))
        open_rows = Item.objects.filter(batch_id=job.batch_id, status__in=("pending", "running"))
        waiting = Batch.objects.filter(pk=job.batch_id, reason__contains="embedding server")

        async def waits_with_all_rows_made() -> bool:
            return await waiting.aexists() and not await open_rows.aexists()

        await until(waits_with_all_rows_made)
        batch = await Batch.objects.aget()
        assert "Rows are generated in the meantime" in batch.reason
        assert batch.status == BatchStatus.RUNNING
        assert (await in_db(said, job))[:2] == ["accepted", "accepted"]
        await away.aupdate(base_url=address, **UNSEEN)
        async with asyncio.timeout(150):
            await pump
        batch = await Batch.objects.aget()
        assert (batch.status, batch.reason) == (BatchStatus.DONE, "")
        assert (await in_db(said, job))[1] == "About 100% similar in meaning to row 1."


def test_the_first_of_several_stays(alice: User, server: Server, embedding_server: Server) -> None:
    """Also of those that are compared at the same time, and whatever the order of the pairs."""
    job = job_of(alice, server, [f"Text {at}" for at in range(5)], meaning=0.9)
    comparison = SemanticFilter(job.batch_id, job.spec)
    items = list(Item.objects.filter(batch_id=job.batch_id).order_by("index"))
    angles = np.array([0.0, 0.4, 0.8, 1.2, 0.01])  # 0.4 apart: a cosine of 0.92
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    first = comparison.reject_similar(items[:2], vectors[:2])
    later = comparison.reject_similar(items[2:], vectors[2:])
    reasons = {row.item_id: row.reason for row in first + later}
    # The third resembles only the second, which went.
    assert [item.index for item in items if item.pk in reasons] == [1, 3, 4]
    assert reasons[items[3].pk] == "About 92% similar in meaning to row 3."


def test_what_is_kept_grows() -> None:
    kept = KnownTexts("x", "row {}")
    rng = np.random.default_rng(1)
    parts = [rng.random((count, 3), dtype=np.float32) for count in (2, 1, 7)]
    for part in parts:
        kept.add(range(len(part)), part)
    assert np.array_equal(kept.vectors, np.concatenate(parts))
    assert len(kept.places) == 10


def test_job_compared_by_meaning_needs_an_embedding_server(
    alice: User, server: Server, browser: Client
) -> None:
    with pytest.raises(RecipeError, match=r"needs an embedding server\. No server set"):
        job_of(alice, server, ["A"])
    answer = browser.post("/generate/new/", {**FORM, "meaning": "90"})
    assert answer.status_code == 422
    assert "Comparing by meaning needs an embedding server" in answer.content.decode()


def test_job_compared_by_meaning_is_limited_in_texts(
    alice: User, server: Server, embedding_server: Server
) -> None:
    with pytest.raises(RecipeError, match="limited to 20,000 texts"):
        job_of(alice, server, ["A"], rows=20_001)
    assert not Job.objects.exists()


def test_meaning_threshold_is_saved_shown_and_duplicated_with_the_job(
    alice: User, server: Server, embedding_server: Server, browser: Client
) -> None:
    browser.post("/generate/new/", {**FORM, "meaning": "90"})
    job = Job.objects.get()
    assert job.spec.filters.meaning == 0.9
    assert "(meaning) above 90%" in browser.get(f"/generate/{job.pk}/recipe/").content.decode()
    form = one_line(browser.get(f"/generate/new/?like={job.pk}").content.decode())
    assert 'name="meaning" value="90"' in form
    assert services.duplicate(job).spec.filters.meaning == 0.9
