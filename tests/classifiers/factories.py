"""Rows, datasets and trained classifiers with defaults."""

from typing import Any

import numpy as np
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.classifiers import services
from apps.classifiers.models import Classifier, Run
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.embeddings import canary
from apps.embeddings.background_saves import wait_until_saved
from apps.embeddings.models import EmbeddingModel
from apps.files import ExampleRow
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.work import services as work

TOPICS = {
    "card": "my bank card is lost and I need a new card number {}",
    "rate": "what exchange rate do you give for euro amount {}",
    "hello": "HELLO THERE GOOD MORNING {}",
}


def rows(per_label: int = 12, *, split: str | None = None, start: int = 0) -> list[ExampleRow]:
    return [
        ExampleRow(text.format(number), label, split)
        for number in range(start, start + per_label)
        for label, text in TOPICS.items()
    ]


def dataset(owner: User, given: list[ExampleRow] | None = None, name: str = "Topics") -> Dataset:
    return create_dataset(owner=owner, name=name, rows=given or rows(), origin="tests")


def classifier(owner: User, given: Dataset | None = None, **options: object) -> Classifier:
    """Created with a queued run."""
    made, _ = services.create_classifier(
        owner=owner,
        name="Topics",
        dataset=given or dataset(owner),
        **options,  # type: ignore[arg-type]
    )
    return made


def trained(owner: User, given: Dataset | None = None, **options: object) -> Classifier:
    made = classifier(owner, given, **options)
    train(newest(made))
    made.refresh_from_db()
    assert newest(made).status == "ready", newest(made).error
    return made


def train(run: Run) -> None:
    """Do the run's task as a worker would; `run` itself stays as it was read."""
    assert run.task_id is not None
    work.run(run.task_id)


def newest(made: Classifier) -> Run:
    run = made.runs.first()
    assert run is not None
    return run


def post(client: Client, path: str, data: Any, **more: Any) -> Any:
    """As `client` would, over ASGI; closes with its loop what the answer used of the network."""

    async def send() -> Any:
        try:
            return await _over_asgi(client).post(path, data, headers=_headers(client), **more)
        finally:
            await wait_until_saved()
            await close_clients()
            await close_async_redis()

    return async_to_sync(send)()


def download(client: Client, path: str) -> bytes:
    """All of an answer that is sent in pieces, asked for as `client` would, over ASGI."""

    async def read() -> bytes:
        answer = await _over_asgi(client).get(path, headers=_headers(client))
        assert answer.status_code == 200, answer.content
        assert answer.is_async, "Django would collect it before it sends a byte"
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)()


def _over_asgi(client: Client) -> AsyncClient:
    over_asgi = AsyncClient()
    over_asgi.cookies = client.cookies
    return over_asgi


def _headers(client: Client) -> dict[str, str]:
    key = client.defaults.get("HTTP_AUTHORIZATION")
    return {"authorization": key} if key else {}


def exchange_embedding_model() -> None:
    """As if another model of the same name and size answered than when it was last asked."""
    known = EmbeddingModel.objects.get()
    assert known.canary is not None
    other = -np.frombuffer(known.canary, dtype="<f4")
    EmbeddingModel.objects.update(canary=other.tobytes())
    canary.clear_checked()
