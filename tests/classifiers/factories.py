"""Rows, datasets and trained classifiers with defaults."""

from pathlib import Path
from typing import Any

import numpy as np
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.utils import timezone

from apps.classifiers import services
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.row_results import MapPoints, PredictedRows, RowResults
from apps.classifiers.evaluation.row_texts import row_key
from apps.classifiers.evaluation.statistics.metrics import Codes, Floats, classification_report
from apps.classifiers.evaluation.thresholds.decision import Thresholds
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.predictor import ModelCard, Predictor
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
LABELS = list(TOPICS)


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


def ready(owner: User, *, versions: int = 1) -> Classifier:
    """A classifier with finished versions whose predictions are made up: no model server needed.

    Of its 36 rows the last 6 are test rows; version n labels n - 1 of them wrong.
    """
    data = dataset(owner)
    made = Classifier.objects.create(owner=owner, name="Topics", dataset=data, options={})
    texts = [row.text for row in rows()]
    truth = np.asarray([number % 3 for number in range(36)])
    for number in range(1, versions + 1):
        logits = np.eye(3, dtype=np.float32)[truth] * 4
        logits[30 : 29 + number] = np.roll(logits[30 : 29 + number], 1, axis=1)
        report = classification_report(logits[30:], truth[30:], LABELS, temperature=1.0)
        run = Run.objects.create(
            classifier=made,
            number=number,
            status=Status.READY,
            train_rows=30,
            test_indices=list(range(30, 36)),
            metrics=report.metrics,
            per_class=report.per_class,
            confusion=report.matrix,
            reliability=report.reliability,
            thresholds=Thresholds(0.5, 0.99).as_dict(),
            embedding={"model": "mini", "dimensions": 4, "fingerprint": "f" * 64, "sent": 36},
            versions={"python": "3", "numpy": "2", "scikit-learn": "1"},
            seconds={"embedding": 1.0, "fitting": 1.0, "evaluating": 1.0},
            fit={"labels": 3, "temperature": 1.0, "C": 10.0, "path": []},
            started=timezone.now(),
            finished=timezone.now(),
        )
        _save_files(run, texts, truth, logits)
        made.current = run
    made.save()
    return made


def _save_files(run: Run, texts: list[str], truth: Codes, logits: Floats) -> None:
    def part(places: list[int]) -> PredictedRows:
        return PredictedRows.from_logits(
            index=places,
            source=[0] * len(places),
            keys=[row_key(texts[place]) for place in places],
            truth=truth[places],
            logits=logits[places],
            temperature=1.0,
        )

    points = MapPoints(
        np.zeros((36, 2), dtype=np.float32),
        np.repeat(np.asarray([0, 1], dtype=np.int8), [30, 6]),
        np.concatenate([np.arange(30), np.arange(6)]).astype(np.int32),
    )
    folder = Path(settings.CLASSIFIERS_DIR)
    sides = part(list(range(30))), part(list(range(30, 36))), part([]), part([])
    row_results.save(folder, run.artefact, RowResults(*sides, points))
    card = ModelCard(LABELS, 4, 1.0, "mini", "f" * 64)
    weights = np.eye(3, 4, dtype=np.float32)
    predictor_file.save(folder, run.artefact, Predictor(card, weights, np.zeros(3, np.float32)))
