"""One training run from its rows to a classifier that answers: embed, fit, judge, store.

The run's row says at every moment how far it is. Whatever ends it - an error, a cancel, a dead
worker - leaves the embeddings that were computed, so the next run starts from there.
"""

import asyncio
import hashlib
import json
import logging
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from numpy.typing import NDArray

from apps.classifiers import evaluation, predictor, trainer
from apps.classifiers.leases import MAX_ATTEMPTS, Cancelled, Lease, Lost
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.splits import hold_out, text_groups
from apps.core.db import in_db
from apps.core.redis import close_async_redis
from apps.datasets.formats import duplicate_key
from apps.datasets.models import Dataset, Split
from apps.datasets.services import read_examples
from apps.embeddings.cache import Embedder, TextsTooLarge, Vectors, embed, identify
from apps.llm import services as llm
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.llm.slots import Lane

log = logging.getLogger(__name__)

HELD_OUT = 0.2
MAX_LABELS = 1_000
PROGRESS_SECONDS = 0.5
CONFUSED_TEXT = 300  # characters of an example text kept with the run


class CannotTrain(Exception):
    """The data does not allow it. The message says what is missing and where."""


@dataclass
class Rows:
    """The rows of a run, those to train on first, then those to judge on."""

    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    test: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    test_source: str = ""

    def without(self, places: set[int]) -> "Rows":
        keep = [place for place in range(len(self.texts)) if place not in places]
        return Rows(
            [self.texts[place] for place in keep],
            [self.labels[place] for place in keep],
            [self.origins[place] for place in keep],
            [self.indices[place] for place in keep],
            self.test[keep],
            self.test_source,
        )

    @property
    def hash(self) -> str:
        """Of everything that decides the outcome: texts, labels, order, which side."""
        digest = hashlib.sha256()
        for text, label, test in zip(self.texts, self.labels, self.test.tolist(), strict=True):
            digest.update(json.dumps([text, label, test]).encode())
        return digest.hexdigest()


def train(run_id: int) -> None:
    """Works on a run until it has ended; does nothing where another worker is at it."""
    lease = Lease.take(run_id)
    if lease is None:
        return
    with lease:
        try:
            _train(lease)
        except Cancelled:
            _end(lease, Status.CANCELLED)
        except Lost:
            log.warning("Run %s was taken over or ended by somebody else.", run_id)
        except (CannotTrain, LLMError, llm.NoServer) as error:
            _end(lease, Status.FAILED, error=str(error))
        except Exception:
            _end(
                lease,
                Status.FAILED,
                error="Something broke on our side; the log of the worker says what. "
                "Nothing is lost: train again.",
            )
            raise


def _end(lease: Lease, status: Status, **values: Any) -> None:
    try:
        lease.end(status, **values)
    except Lost:
        log.warning("Run %s had ended before.", lease.run_id)


def _train(lease: Lease) -> None:
    run = Run.objects.select_related(
        "classifier__dataset", "classifier__test_dataset", "classifier__server"
    ).get(pk=lease.run_id)
    if run.attempts > MAX_ATTEMPTS:
        raise CannotTrain(
            f"The worker died {MAX_ATTEMPTS} times during this run. Is there enough memory? "
            "The log of the worker may say more."
        )
    lease.check()
    seconds: dict[str, float] = {}
    lease.write(
        status=Status.EMBEDDING,
        started=run.started or timezone.now(),
        stage_started=timezone.now(),
        done=0,
        total=0,
    )
    begun = time.monotonic()
    rows = gather_rows(run.classifier, seed=run.seed)
    embedder, vectors, rows, left_out, sent = asyncio.run(_embed(lease, run.classifier, rows))
    seconds["embedding"] = round(time.monotonic() - begun, 2)

    labels, codes = check_rows(rows)
    groups = text_groups([duplicate_key(text) for text in rows.texts])
    train_side = ~rows.test
    lease.write(
        status=Status.FITTING,
        stage_started=timezone.now(),
        done=0,
        total=0,
        seconds=seconds,
        left_out=left_out,
        data_hash=rows.hash,
        train_rows=int(train_side.sum()),
        test_source=rows.test_source,
        test_indices=[rows.indices[place] for place in np.flatnonzero(rows.test).tolist()],
        embedding={
            "model": embedder.target.model,
            "fingerprint": embedder.fingerprint,
            "dimensions": int(vectors.shape[1]),
            "sent": sent,
        },
        versions=versions(),
    )
    begun = time.monotonic()
    fit = trainer.fit(
        vectors[train_side],
        codes[train_side],
        groups[train_side],
        options=trainer.Options(seed=run.seed, balanced=bool(run.options.get("balanced"))),
        report=_Reporter(lease),
    )
    seconds["fitting"] = round(time.monotonic() - begun, 2)

    lease.write(
        status=Status.EVALUATING, stage_started=timezone.now(), done=0, total=1, seconds=seconds
    )
    begun = time.monotonic()
    truth = codes[rows.test]
    logits = fit.model.logits(vectors[rows.test])
    report = evaluation.evaluate(logits, truth, labels, temperature=fit.model.temperature)
    confused = evaluation.most_confused(truth, logits.argmax(axis=1), labels)
    _store(run, fit, labels, embedder, vectors.shape[1])
    seconds["evaluating"] = round(time.monotonic() - begun, 2)
    _finish(
        lease,
        run,
        seconds=seconds,
        metrics=report.metrics,
        per_class=report.per_class,
        confusion=report.matrix,
        confused=_with_texts(confused, rows),
        reliability=report.reliability,
        fit={
            "C": fit.C,
            "temperature": fit.model.temperature,
            "converged": fit.converged,
            "at_edge": fit.at_edge,
            "path": [{"C": s.C, "log_loss": s.log_loss, "accuracy": s.accuracy} for s in fit.path],
            "labels": len(labels),
        },
        notes=_notes(rows, groups, left_out),
    )


@transaction.atomic
def _finish(lease: Lease, run: Run, **values: Any) -> None:
    """The run is ready and answers from now on: both or neither."""
    lease.end(Status.READY, done=1, **values)
    Classifier.objects.filter(pk=run.classifier_id).update(current=run)


# --- Rows ---------------------------------------------------------------------


def gather_rows(classifier: Classifier, *, seed: int) -> Rows:
    """The rows to train on and those to judge on.

    Judged on: the test set that was chosen; else the rows the dataset marks as test; else a fifth
    of each label, drawn with the seed, rows with the same text together.

    Raises:
        CannotTrain: the dataset is gone, or too small to hold rows back.
    """
    if classifier.dataset is None:
        raise CannotTrain("The dataset of this classifier was deleted. Make a new classifier.")
    rows = Rows()
    marked = _add(rows, classifier.dataset)
    test = np.asarray([split == Split.TEST for split in marked], dtype=np.bool_)
    if classifier.test_dataset is not None:
        rows = _only(rows, ~test)  # its own test rows were meant for judging, never for training
        count = len(rows.texts)
        _add(rows, classifier.test_dataset)
        rows.test = np.arange(len(rows.texts)) >= count
        rows.test_source = f"the dataset “{classifier.test_dataset.name}”"
    elif test.any():
        rows.test = test
        rows.test_source = "the rows the dataset marks as test"
    else:
        _, codes = np.unique(np.asarray(rows.labels), return_inverse=True)
        groups = text_groups([duplicate_key(text) for text in rows.texts])
        _check_counts(rows.labels, groups, minimum=trainer.MIN_TEXTS + 1)
        rows.test = hold_out(codes.astype(np.int64), groups, share=HELD_OUT, seed=seed)
        rows.test_source = "a fifth of the rows, held back"
    return rows


def _add(rows: Rows, dataset: Dataset) -> list[str]:
    """Appends a dataset's rows; their splits."""
    splits = []
    for example in read_examples(dataset):
        rows.texts.append(example.text)
        rows.labels.append(example.label)
        rows.origins.append(example.origin or f"example {example.index + 1}")
        rows.indices.append(example.index)
        splits.append(example.split)
    return splits


def _only(rows: Rows, keep: NDArray[np.bool_]) -> Rows:
    rows.test = np.zeros(len(rows.texts), dtype=np.bool_)
    return rows.without(set(np.flatnonzero(~keep).tolist()))


def check_rows(rows: Rows) -> tuple[list[str], NDArray[np.int64]]:
    """The labels in order, and each row's label as a number.

    Raises:
        CannotTrain: a label has too few texts, or the test rows have a label nobody trains.
    """
    train_labels = [label for label, test in zip(rows.labels, rows.test, strict=True) if not test]
    labels = sorted(set(train_labels))
    if len(labels) < 2:
        raise CannotTrain(
            "There is only one label. A classifier needs at least two to choose between."
            if labels
            else "There is no row to train on."
        )
    if len(labels) > MAX_LABELS:
        raise CannotTrain(
            f"There are {len(labels):,} different labels; at most {MAX_LABELS:,} can be trained. "
            "Is another column the label?"
        )
    unknown = sorted(set(rows.labels) - set(labels))
    if unknown:
        raise CannotTrain(
            f"{_named(unknown)} in the test rows but never in the training rows. "
            "Add training rows for it, or choose another test set."
        )
    if not rows.test.any():
        raise CannotTrain("There is no row to judge the classifier on.")
    groups = text_groups([duplicate_key(text) for text in rows.texts])
    _check_counts(train_labels, groups[~rows.test], minimum=trainer.MIN_TEXTS)
    place = {label: number for number, label in enumerate(labels)}
    return labels, np.asarray([place[label] for label in rows.labels], dtype=np.int64)


def _check_counts(labels: Sequence[str], groups: NDArray[np.int64], *, minimum: int) -> None:
    """A text that carries two labels counts for the one it came with first."""
    _, first = np.unique(groups, return_index=True)
    texts = Counter(labels[place] for place in first.tolist())
    few = sorted(label for label in set(labels) if texts[label] < minimum)
    if few:
        counts = ", ".join(f"“{label}” has {texts[label]}" for label in few[:5])
        more = f" and {len(few) - 5} more labels have too few" if len(few) > 5 else ""
        raise CannotTrain(
            f"Each label needs at least {minimum} different texts: {counts}{more}. "
            "Add examples, or remove these labels."
        )


def _named(labels: list[str]) -> str:
    shown = ", ".join(f"“{label}”" for label in labels[:5])
    more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
    return f"The label {shown} is" if len(labels) == 1 else f"The labels {shown}{more} are"


# --- Embedding ----------------------------------------------------------------


async def _embed(
    lease: Lease, classifier: Classifier, rows: Rows
) -> tuple[Embedder, Vectors, Rows, list[dict[str, Any]], int]:
    """The vectors of all rows, and the rows that are too long for the model, left out."""
    try:
        reporter = _Reporter(lease)
        target = await in_db(embedding_target, classifier)
        embedder = await identify(target)
        sent = 0

        async def progress(done: int, total: int) -> None:
            nonlocal sent
            sent = max(sent, total)
            await in_db(reporter, done, total)

        left_out: list[dict[str, Any]] = []
        try:
            vectors = await embed(embedder, rows.texts, lane=Lane.BATCH, progress=progress)
        except TextsTooLarge as error:
            left_out = [
                {
                    "row": rows.origins[place],
                    "test": bool(rows.test[place]),
                    "text": rows.texts[place][:CONFUSED_TEXT],
                    "reason": str(reason),
                }
                for place, reason in error.problems.items()
            ]
            rows = rows.without(set(error.problems))
            if not rows.texts:
                raise CannotTrain(str(error)) from error
            vectors = await embed(embedder, rows.texts, lane=Lane.BATCH)
        return embedder, vectors, rows, left_out, sent
    finally:
        await close_clients()
        await close_async_redis()


def embedding_target(classifier: Classifier) -> llm.Target:
    """The server and model whose vectors a classifier is made of.

    Raises:
        NoServer: the server was removed.
    """
    if classifier.server is None:
        raise llm.NoServer("The embedding server of this classifier was removed.")
    return llm.target(classifier.server, classifier.model)


class _Reporter:
    """Writes progress, not oftener than a person can read it, and sees a cancel."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._last = -PROGRESS_SECONDS

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last < PROGRESS_SECONDS and done < total:
            return
        self._last = now
        self._lease.write(done=done, total=total)
        self._lease.check()


# --- Result -------------------------------------------------------------------


def _store(
    run: Run, fit: trainer.Fit, labels: list[str], embedder: Embedder, dimensions: int
) -> None:
    card = predictor.Card(
        labels=labels,
        dimensions=dimensions,
        temperature=fit.model.temperature,
        embedding_model=embedder.target.model,
        embedding_fingerprint=embedder.fingerprint,
    )
    predictor.save(
        Path(settings.CLASSIFIERS_DIR),
        run.artefact,
        predictor.Predictor(card, fit.model.weights, fit.model.bias),
    )


def _with_texts(confused: list[evaluation.Confused], rows: Rows) -> list[dict[str, Any]]:
    places = np.flatnonzero(rows.test)
    return [
        {
            "label": pair["label"],
            "predicted": pair["predicted"],
            "count": pair["count"],
            "support": pair["support"],
            "texts": [rows.texts[places[row]][:CONFUSED_TEXT] for row in pair["rows"]],
        }
        for pair in confused
    ]


def _notes(rows: Rows, groups: NDArray[np.int64], left_out: list[dict[str, Any]]) -> list[str]:
    notes = []
    shared = np.isin(groups[rows.test], groups[~rows.test]).sum()
    if shared:
        notes.append(
            f"{shared:,} of the {rows.test.sum():,} test rows also occur in the training rows: "
            "the score is that much too kind."
        )
    if left_out:
        notes.append(
            f"{len(left_out):,} rows are too long for the embedding model and were left out. "
            "They are listed below."
        )
    return notes


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": trainer.LIBRARY_VERSION,
    }
