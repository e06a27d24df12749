"""One training run from its rows to a classifier that answers, stage by stage.

Gather, embed, fit, judge, store. The run's row says at every moment how far it is. Whatever ends
it - an error, a cancel, a dead worker - leaves the embeddings that were computed, so the next run
starts from there.
"""

import asyncio
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from numpy.typing import NDArray

from apps.classifiers.errors import CannotTrain, NoRowResults
from apps.classifiers.evaluation import evaluate_run, mcnemar, row_results, thresholds
from apps.classifiers.evaluation.row_texts import SHOWN_TEXT
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.prediction import predictor
from apps.classifiers.training import trainer
from apps.classifiers.training.review_queue import build_review_queue
from apps.classifiers.training.rows import (
    LabelOptions,
    TrainingRows,
    encode_labels,
    gather_rows,
    resolve_labels,
)
from apps.classifiers.transfer import convert
from apps.embeddings import arrays, canary, retention
from apps.embeddings.cache import Embedder, Stats, TextsTooLarge, identify
from apps.embeddings.preparation import Preparation, TooFewDimensions, embed_prepared
from apps.embeddings.sender import Vectors
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers import services as llm
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import TaskState
from apps.work.services import MAX_ATTEMPTS, HeldTask

PROGRESS_SECONDS = 0.5
SAME_VECTOR = 1e-6  # more apart than rounding puts two runs of one computation


EXPECTED = (CannotTrain, LLMError, llm.NoServer, TooFewDimensions)
INTERNAL_ERROR = (
    "Something went wrong. Details are in the worker log. Nothing is lost: train again."
)


def train(held: HeldTask) -> None:
    """Train the run that a task is about: the handler of `TaskKind.TRAINING`."""
    try:
        run, stored = _train(held)
    except LeaseLost:
        raise
    except TaskCancelled:
        return _end(held, Status.CANCELLED)
    except EXPECTED as error:
        return _end(held, Status.FAILED, str(error))
    except Exception:
        _end(held, Status.FAILED, INTERNAL_ERROR)
        raise
    # The version is live already: nobody waits for this, and an error in it costs no classifier.
    convert.write(Path(settings.CLASSIFIERS_DIR), run.artefact, stored)


def _train(held: HeldTask) -> tuple[Run, predictor.Predictor]:
    training = Training(held)
    embedded = training.embed(training.gather())
    fit = training.fit(embedded)
    evaluation = training.evaluate(embedded, fit)
    return training.run, training.store(embedded, fit, evaluation)


@transaction.atomic
def _end(held: HeldTask, status: Status, error: str = "") -> None:
    state = TaskState.CANCELLED if status == Status.CANCELLED else TaskState.FAILED
    held.end(state, error)
    active = Run.objects.filter(pk=held.subject).active()
    active.update(status=status, error=error, finished=timezone.now())


@dataclass(frozen=True, slots=True)
class Embedded:
    """Rows with their vectors: what a fit works on."""

    rows: TrainingRows
    labels: list[str]
    codes: NDArray[np.int64]
    """(rows,), -1 for rows without a label to be learned."""
    train: Vectors
    test: Vectors
    out_of_scope: Vectors
    unlabelled: Vectors
    skipped_rows: list[dict[str, Any]]
    embedder: Embedder

    @property
    def train_side(self) -> NDArray[np.bool_]:
        return self.rows.labelled & ~self.rows.test


class Training:
    """The stages of a run, one method each, and what they share."""

    def __init__(self, held: HeldTask) -> None:
        self.held = held
        self.run = Run.objects.select_related(
            "classifier__dataset", "classifier__test_dataset", "classifier__server"
        ).get(pk=held.subject)
        if held.is_worn_out:
            raise CannotTrain(
                f"The worker died {MAX_ATTEMPTS} times during this run. Is there enough memory? "
                "The log of the worker may say more."
            )
        held.check()
        self.seconds: dict[str, float] = {}
        self.options = trainer.Options(
            seed=self.run.seed, balanced=bool(self.run.options.get("balanced"))
        )
        self.preparation = Preparation.read(self.run.options)
        self.choices = LabelOptions.read(self.run.options)

    def gather(self) -> TrainingRows:
        self._begin(Status.EMBEDDING, started=self.run.started or timezone.now())
        rows = gather_rows(self.run.classifier, seed=self.run.seed, choices=self.choices)
        # Before hours of embedding, not after: what is wrong with the labels is known now.
        return resolve_labels(rows, self.choices)[0]

    def embed(self, rows: TrainingRows) -> Embedded:
        """Vectors for all rows. Those that do not fit into the model are left out and listed."""
        with self._timed(Status.EMBEDDING):
            found = asyncio.run(embed_rows(self.held, self.run.classifier, rows, self.preparation))
        vectors = found.vectors
        rows, keep = resolve_labels(found.rows, self.choices)  # some may have been too long
        if not keep.all():
            vectors = arrays.take(vectors, keep)
        labels, codes = encode_labels(rows)
        train = rows.labelled & ~rows.test
        self._begin(
            Status.FITTING,
            seconds=self.seconds,
            skipped_rows=found.skipped_rows,
            data_hash=rows.hash,
            snapshots=rows.snapshots,
            train_rows=int(train.sum()),
            test_source=rows.test_source,
            test_indices=[rows.indices[place] for place in np.flatnonzero(rows.test).tolist()],
            embedding=self.preparation.as_dict()
            | {
                "model": found.embedder.target.model,
                "fingerprint": found.embedder.fingerprint,
                "dimensions": int(vectors.shape[1]),
                "sent": found.stats.sent,
                "normalised": found.stats.normalised,
            },
            versions=versions(),
        )
        return Embedded(
            rows,
            labels,
            codes,
            arrays.take(vectors, train),
            arrays.take(vectors, rows.test),
            arrays.take(vectors, rows.out_of_scope),
            arrays.take(vectors, rows.unlabelled),
            found.skipped_rows,
            found.embedder,
        )

    def fit(self, data: Embedded) -> trainer.Fit:
        side = data.train_side
        with self._timed(Status.FITTING):
            fit = trainer.fit(
                data.train,
                data.codes[side],
                data.rows.groups[side],
                options=self.options,
                report=Reporter(self.held),
            )
        self._begin(Status.EVALUATING, total=evaluate_run.STEPS, seconds=self.seconds)
        return fit

    def evaluate(self, data: Embedded, fit: trainer.Fit) -> evaluate_run.RunEvaluation:
        with self._timed(Status.EVALUATING):
            return evaluate_run.evaluate(
                data.rows,
                data.labels,
                data.codes,
                evaluate_run.RowVectors(data.train, data.test, data.out_of_scope, data.unlabelled),
                fit,
                self.options,
                report=Reporter(self.held),
            )

    def store(
        self, data: Embedded, fit: trainer.Fit, evaluation: evaluate_run.RunEvaluation
    ) -> predictor.Predictor:
        """The classifier, what is known of each row, the queue; then the run is ready."""
        folder = Path(settings.CLASSIFIERS_DIR)
        card = predictor.ModelCard(
            labels=data.labels,
            dimensions=int(data.train.shape[1]),
            temperature=fit.model.temperature,
            embedding_model=data.embedder.target.model,
            embedding_fingerprint=data.embedder.fingerprint,
            preparation=self.preparation.as_dict(),
            favour=fit.model.favour.tolist() if self.options.balanced else [],
            familiarity=evaluation.familiarity.as_dict(),
        )
        stored = predictor.Predictor(
            card, fit.model.weights, fit.model.bias, evaluation.familiarity
        )
        predictor.save(folder, self.run.artefact, stored)
        row_results.save(folder, self.run.artefact, evaluation.row_results)
        chosen = self._thresholds(evaluation, len(data.labels))
        held_back = self._held_back(evaluation, data.labels)
        self._finish(
            answers=not held_back,
            review_queue=build_review_queue(data, fit, evaluation.row_results),
            seconds=self.seconds,
            metrics=evaluation.report.metrics,
            per_class=evaluation.report.per_class,
            confusion=evaluation.report.matrix,
            confused_pairs=evaluation.confused_pairs,
            reliability=evaluation.report.reliability,
            leaks=evaluation.leaks,
            learning_curve=evaluation.learning_curve,
            thresholds=chosen.as_dict(),
            fit={
                "C": fit.C,
                "temperature": fit.model.temperature,
                "converged": fit.converged,
                "at_edge": fit.at_edge,
                "mistakes": fit.mistakes,
                "calibrated": fit.calibrated,
                "held_back": bool(held_back),
                "path": [
                    {"C": s.C, "log_loss": s.log_loss, "accuracy": s.accuracy} for s in fit.path
                ],
                "labels": len(data.labels),
                "strange_rows": len(data.out_of_scope),
                "unlabelled_rows": len(data.unlabelled),
            },
            notes=held_back
            + data.rows.notes
            + evaluation.notes
            + _out_of_scope_notes(data.rows, chosen)
            + _skipped_notes(data.skipped_rows),
        )
        return stored

    def _thresholds(
        self, evaluation: evaluate_run.RunEvaluation, labels: int
    ) -> thresholds.Thresholds:
        """The person's choice holds for every run; else what the out-of-scope rows suggest."""
        chosen = self.run.classifier.options.get("gates") or {}
        known, out_of_scope = evaluation.row_results.train, evaluation.row_results.out_of_scope
        kept = chosen.get("kept")
        if kept is None:
            kept = thresholds.best_kept_share(known.familiarity, out_of_scope.familiarity)
        unsure = chosen.get("unsure")
        if unsure is None:
            unsure = thresholds.default_min_confidence(labels, balanced=self.options.balanced)
        return thresholds.thresholds_for(
            known, unsure=float(unsure), kept=float(kept), labels=labels
        )

    def _held_back(self, evaluation: evaluate_run.RunEvaluation, labels: list[str]) -> list[str]:
        """Why the run that answers goes on doing so; empty where this one may take its place."""
        now = Classifier.objects.select_related("current").get(pk=self.run.classifier_id)
        if now.current is None or now.pinned:
            return []
        try:
            before = row_results.load(Path(settings.CLASSIFIERS_DIR), now.current.artefact).test
        except NoRowResults:
            return []
        rows = mcnemar.shared_test_rows(
            mcnemar.RunPredictions(before, [entry["label"] for entry in now.current.per_class]),
            mcnemar.RunPredictions(evaluation.row_results.test, labels),
        )
        if not len(rows):
            return []
        found = mcnemar.compare_paired(rows.old_correct, rows.new_correct)
        if not found.is_significant or found.difference >= 0:
            return []
        return [
            f"Held back: on the {found.rows:,} test rows that both were tested on, it is "
            f"{-100 * found.difference:.1f} percentage points worse than run {now.current.number} "
            f"(McNemar’s test, p {mcnemar.format_p_value(found.p_value)}), which stays live. "
            "To use this run, choose it under Versions."
        ]

    @transaction.atomic
    def _finish(self, *, answers: bool, **values: Any) -> None:
        """The run is ready and answers from now on, unless another was promoted or it is worse than
        the one that answers: all or nothing."""
        self.held.end(TaskState.DONE)
        self._write(status=Status.READY, finished=timezone.now(), **values)
        if answers:
            mine = Classifier.objects.filter(pk=self.run.classifier_id, pinned=False)
            mine.update(current=self.run)

    def _begin(self, stage: Status, *, total: int = 0, **values: Any) -> None:
        with self.held.fence(done=0, total=total):
            self._write(status=stage, stage_started=timezone.now(), **values)
        self.held.check()

    def _write(self, **values: Any) -> None:
        if not Run.objects.filter(pk=self.run.pk).active().update(**values):
            raise LeaseLost  # it was deleted

    @contextmanager
    def _timed(self, stage: Status) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.seconds[stage.value] = round(time.monotonic() - begun, 2)


# --- Embedding ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    embedder: Embedder
    vectors: Vectors
    rows: TrainingRows
    skipped_rows: list[dict[str, Any]]
    stats: Stats


async def embed_rows(
    held: HeldTask, classifier: Classifier, rows: TrainingRows, preparation: Preparation
) -> _Found:
    """The vectors of all rows, and the rows that are too long for the model: left out or cut."""
    try:
        reporter = Reporter(held)
        target = await in_db(embedding_target, classifier)
        embedder = await identify(target, lane=Lane.BATCH, anew=True)
        notes = _batch_notes(await canary.batch_difference(embedder.target, lane=Lane.BATCH))
        newest = await in_db(retention.newest)
        stats = Stats()

        async def progress(done: int, total: int) -> None:
            await in_db(reporter, done, total)

        notices: dict[int, str] = {}
        try:
            prepared = await embed_prepared(
                embedder, rows.texts, preparation, lane=Lane.BATCH, progress=progress, stats=stats
            )
            notices = prepared.shortened
            skipped_rows = [_listed(rows, place, notice) for place, notice in notices.items()]
        except TextsTooLarge as error:
            skipped_rows = [
                _listed(rows, place, str(reason)) for place, reason in error.problems.items()
            ]
            keep = np.ones(len(rows.texts), dtype=np.bool_)
            keep[list(error.problems)] = False
            rows = rows.only(keep)
            if not rows.texts:
                raise CannotTrain(str(error)) from error
            prepared = await embed_prepared(
                embedder, rows.texts, preparation, lane=Lane.BATCH, stats=stats
            )
        now = await identify(target, lane=Lane.BATCH, anew=True)
        if now.fingerprint != embedder.fingerprint:
            await in_db(retention.forget_after, embedder.fingerprint, newest)
            raise CannotTrain(
                "Another embedding model answered before all rows had their vectors. Train again "
                "when it stays."
            )
        rows.notes.extend(notes)
        return _Found(embedder, prepared.vectors, rows, skipped_rows, stats)
    finally:
        await close_clients()
        await close_async_redis()


def _batch_notes(difference: float) -> list[str]:
    if difference <= SAME_VECTOR:
        return []
    return [
        f"This embedding server's vectors depend on what is embedded beside a text, by up to "
        f"{difference:.1g} a number: it computes several texts together. What a program gets for "
        "the same text can differ in the third digit of a probability. Start the server with "
        "`-np 1` to end that."
    ]


def _listed(rows: TrainingRows, place: int, reason: str) -> dict[str, Any]:
    return {
        "row": rows.origins[place],
        "test": bool(rows.test[place]),
        "text": rows.texts[place][:SHOWN_TEXT],
        "reason": reason,
    }


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


class Reporter:
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


def _out_of_scope_notes(rows: TrainingRows, chosen: thresholds.Thresholds) -> list[str]:
    out_of_scope = rows.out_of_scope
    count = int(out_of_scope.sum())
    if not count:
        return []
    names = sorted({label for label, is_so in zip(rows.labels, out_of_scope, strict=True) if is_so})
    few = count < thresholds.FEW_OUT_OF_SCOPE
    why = "They are too few to move the threshold" if few else "Half of them chose the threshold"
    return [
        f"{count:,} rows labelled out of scope ({', '.join(f'“{name}”' for name in names[:5])}) "
        f"are not trained as a label. {why}: the least familiar "
        f"{1 - chosen.kept:.1%} of in-scope texts are answered “none of these”. Where this is a "
        "label like any other, make a classifier that trains it."
    ]


def _skipped_notes(skipped_rows: list[dict[str, Any]]) -> list[str]:
    if not skipped_rows:
        return []
    return [
        f"{len(skipped_rows):,} rows are too long for the embedding model. "
        "They are listed below with what was done."
    ]


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": trainer.LIBRARY_VERSION,
    }
