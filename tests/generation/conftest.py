"""A job of alice's, with rows in every state."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.utils import timezone

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.services import create_job
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.generation.recipe.test_parse import REVIEWS


@pytest.fixture
async def _closed_connections() -> AsyncIterator[None]:
    yield
    await close_clients()
    await close_async_redis()


def new_job(owner: User, server: Server, rows: int = 10, **recipe: Any) -> Job:
    return create_job(
        JobRequest(
            name="Reviews",
            rows=rows,
            seed=7,
            recipe=parse(
                {name: part for name, part in (REVIEWS | recipe).items() if name != "quotas"}
            ),
        ),
        owner=owner,
        server=server,
    )


def finish(job: Job, index: int, status: ItemStatus, **values: Any) -> None:
    values = {"attempts": 1, "finished": timezone.now(), "prompt": "Write it."} | values
    Item.objects.filter(batch_id=job.batch_id, index=index).update(status=status, **values)


@pytest.fixture
def job(alice: User, server: Server) -> Job:
    """Ten rows: five accepted, one rejected, one failed, one running, two pending."""
    job = new_job(alice, server)
    for index in range(5):
        label = ["positive", "negative"][index % 2]
        finish(
            job,
            index,
            ItemStatus.ACCEPTED,
            output={"text": f"Text {index}.", "label": label},
            raw=f'{{"text": "Text {index}.", "label": "{label}"}}',
            prompt_tokens=60,
            cached_tokens=50,
            completion_tokens=20,
        )
    finish(
        job, 5, ItemStatus.REJECTED, code="length", reason="Cut off: too long.", raw='{"text": "Te'
    )
    finish(job, 6, ItemStatus.FAILED, code="stalled", reason="It fell silent.", attempts=3)
    finish(job, 7, ItemStatus.RUNNING, finished=None, prompt="")
    Batch.objects.filter(pk=job.batch_id).update(
        status=BatchStatus.RUNNING,
        active_seconds=10.0,
        prompt_tokens=300,
        cached_tokens=250,
        completion_tokens=100,
    )
    job.batch.refresh_from_db()
    return job


@pytest.fixture
def async_browser(alice: User) -> AsyncClient:
    client = AsyncClient()
    client.force_login(alice)
    return client


async def body_of(answer: Any) -> str:
    return b"".join([part async for part in answer.streaming_content]).decode()


def item_of(job: Job, index: int) -> Item:
    return Item.objects.get(batch_id=job.batch_id, index=index)


def message_of(client: Client, address: str, form: dict[str, Any]) -> str:
    """Post a form; return the page that follows."""
    return client.post(address, form, follow=True).content.decode()


JUDGED: dict[str, Any] = {
    "columns": [
        {"name": "topic", "kind": "category", "values": ["billing", "crash"]},
        {"name": "text", "kind": "text", "prompt": "A ticket on {{ topic }}."},
        {
            "name": "judge",
            "kind": "judge",
            "criteria": [{"name": "quality", "description": "Is it good?", "at_least": 2}],
        },
    ]
}
ROWS: list[tuple[str, str, int | None]] = [
    ("billing", "Ein Überschuss.", 3),
    ("crash", 'It said "topic": "billing" and froze.', 1),
    ("billing", "Text of mine.", 5),
    ("crash", "Nothing.", None),
]


@pytest.fixture
def judged(alice: User, server: Server) -> Job:
    """Four accepted rows, the last without a score."""
    job = new_job(alice, server, 4)
    Batch.objects.filter(pk=job.batch_id).update(
        status="done", spec={**job.batch.spec, "recipe": JUDGED}
    )
    for index, (topic, text, score) in enumerate(ROWS):
        scores = {} if score is None else {"judge_reason": "So.", "quality": score}
        output = {"topic": topic, "text": text, **scores}
        finish(job, index, ItemStatus.ACCEPTED, output=output)
    return Job.objects.select_related("batch").get(pk=job.pk)


def set_fingerprints(job: Job) -> None:
    """Give the rows of a job what a sample is drawn by."""
    for item in Item.objects.filter(batch_id=job.batch_id):
        item.fingerprint = f"{item.index:032}"
        item.save(update_fields=["fingerprint"])
