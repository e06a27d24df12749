"""The vectors of a run's rows, and the rows that are too long for the embedding model."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.errors import CannotTrain
from apps.classifiers.evaluation.row_texts import SHOWN_TEXT
from apps.classifiers.models import Classifier
from apps.classifiers.run_results import SkippedRow
from apps.classifiers.training.rows import RowVectors, TrainingRows
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import (
    Embedder,
    EmbedStats,
    Preparation,
    PreparedVectors,
    Progress,
    Vectors,
    batch_difference,
    delete_newer_than,
    embed_prepared,
    identify,
    newest_key,
)
from apps.llm.client import close_clients
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers import services as llm
from apps.work.services import HeldTask

PROGRESS_SECONDS = 0.5
SAME_VECTOR = 1e-6  # more apart than rounding puts two runs of one computation


@dataclass(frozen=True, slots=True)
class EmbeddedRows:
    """Rows with their vectors: the input of a fit."""

    rows: TrainingRows
    labels: list[str]
    codes: NDArray[np.int64]
    """(rows,), -1 for rows without a label to be learned."""
    vectors: RowVectors
    skipped_rows: list[SkippedRow]
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    embedder: Embedder
    vectors: Vectors
    rows: TrainingRows
    skipped_rows: list[SkippedRow]
    stats: EmbedStats


class ProgressReporter:
    """Writes progress, not oftener than a person can read it, and sees a cancel."""

    def __init__(self, held: HeldTask) -> None:
        self._held = held
        self._last = -PROGRESS_SECONDS

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last < PROGRESS_SECONDS and done < total:
            return
        self._last = now
        self._held.report(done, total)


async def embed_rows(
    held: HeldTask, classifier: Classifier, rows: TrainingRows, preparation: Preparation
) -> EmbeddedTexts:
    """The vectors of all rows, and the rows that are too long for the model: left out or cut."""
    try:
        target = await in_db(embedding_target, classifier)
        embedder = await identify(target, lane=Lane.BATCH, recheck=True)
        notes = _batch_notes(await batch_difference(embedder.target, lane=Lane.BATCH))
        newest = await in_db(newest_key)
        embedded = await _embed_fitting(embedder, rows, preparation, ProgressReporter(held))
        now = await identify(target, lane=Lane.BATCH, recheck=True)
        if now.fingerprint != embedder.fingerprint:
            await in_db(delete_newer_than, embedder.fingerprint, newest)
            raise CannotTrain(
                "Another embedding model answered before all rows had their vectors. Train again "
                "when it stays."
            )
        embedded.rows.notes.extend(notes + _fallback_notes(target, embedder, now))
        return embedded
    finally:
        await close_clients()
        await close_async_redis()


async def _embed_fitting(
    embedder: Embedder, rows: TrainingRows, preparation: Preparation, reporter: ProgressReporter
) -> EmbeddedTexts:
    """Embed the rows; if some are too long for the model and may not be cut, the others alone.

    Raises:
        CannotTrain: all rows are too long.
    """
    stats = EmbedStats()

    async def progress(done: int, total: int) -> None:
        await in_db(reporter, done, total)

    async def embed(progress: Progress | None) -> PreparedVectors:
        return await embed_prepared(
            embedder, rows.texts, preparation, lane=Lane.BATCH, progress=progress, stats=stats
        )

    try:
        prepared = await embed(progress)
        notices = prepared.shortened
        skipped_rows = [_skipped(rows, place, notice) for place, notice in notices.items()]
    except TextsTooLarge as error:
        problems = error.problems
        skipped_rows = [_skipped(rows, place, str(why)) for place, why in problems.items()]
        keep = np.ones(len(rows.texts), dtype=np.bool_)
        keep[list(problems)] = False
        rows = rows.only(keep)
        if not rows.texts:
            raise CannotTrain(str(error)) from error
        prepared = await embed(None)
    return EmbeddedTexts(embedder, prepared.vectors, rows, skipped_rows, stats)


def _fallback_notes(target: llm.Target, *used: Embedder) -> list[str]:
    others = {str(one.target.server) for one in used if one.target.server != target.server}
    return [
        f"“{target.server}” did not answer. Embeddings came from “{other}”, with the same vectors."
        for other in sorted(others)
    ]


def _batch_notes(difference: float) -> list[str]:
    if difference <= SAME_VECTOR:
        return []
    return [
        f"This embedding server's vectors depend on what is embedded beside a text, by up to "
        f"{difference:.1g} a number: it computes several texts together. What a program gets for "
        "the same text can differ in the third digit of a probability. Start the server with "
        "`-np 1` to end that."
    ]


def _skipped(rows: TrainingRows, place: int, reason: str) -> SkippedRow:
    text = rows.texts[place][:SHOWN_TEXT]
    return SkippedRow(rows.origins[place], bool(rows.test[place]), text, reason)


def embedding_target(classifier: Classifier) -> llm.Target:
    """The server and model whose vectors a classifier is made of.

    Raises:
        NoServer: the server was removed.
    """
    if classifier.server is None:
        raise llm.NoServer(
            "The embedding server of this classifier was removed. Train again with another one."
        )
    return llm.choose_target(classifier.server, classifier.model, llm.Use.EMBEDDINGS)
