"""Train one run, stage by stage: gather, embed, fit, evaluate, store.

The run's row shows its stage and its task the progress. Whatever ends it - an error, a cancel, a
dead worker - leaves the embeddings that were computed, so the next attempt starts from there.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.classifiers.errors import CannotTrain
from apps.classifiers.evaluation import evaluate_run, row_results
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.prediction import predictor, predictor_file
from apps.classifiers.training import estimator, run_record, trainer
from apps.classifiers.training.embed_rows import EmbeddedRows, ProgressReporter, embed_rows
from apps.classifiers.training.gather_rows import gather_rows
from apps.classifiers.training.label_quality.label_rules import (
    LabelOptions,
    encode_labels,
    resolve_labels,
)
from apps.classifiers.training.label_quality.review_queue import build_review_queue
from apps.classifiers.training.promotion import (
    choose_thresholds,
    held_back_notes,
    run_notes,
)
from apps.classifiers.training.rows import RowVectors, TrainingRows
from apps.classifiers.transfer import convert
from apps.embeddings.errors import TooFewDimensions
from apps.embeddings.services import Preparation, take_rows
from apps.llm.errors import LLMError
from apps.servers import services as llm
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import TaskState
from apps.work.services import MAX_ATTEMPTS, HeldTask

EXPECTED = (CannotTrain, LLMError, llm.NoServer, TooFewDimensions)
INTERNAL_ERROR = (
    "Something went wrong. Details are in the worker log. Your data is safe. Train again."
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


class Training:
    """The stages of a run, one method each."""

    def __init__(self, held: HeldTask) -> None:
        self.held = held
        self.run = Run.objects.select_related(
            "classifier__dataset", "classifier__test_dataset", "classifier__server"
        ).get(pk=held.subject)
        if held.is_worn_out:
            raise CannotTrain(
                f"The worker crashed {MAX_ATTEMPTS} times during this run. Check the available "
                "memory and the worker log."
            )
        held.check()
        self.seconds: dict[str, float] = {}
        self.options = estimator.TrainerOptions(
            seed=self.run.seed, balanced=bool(self.run.options.get("balanced"))
        )
        self.preparation = Preparation.read(self.run.options)
        self.label_options = LabelOptions.read(self.run.options)

    def gather(self) -> TrainingRows:
        self._begin(Status.EMBEDDING, started=self.run.started or timezone.now())
        rows = gather_rows(self.run.classifier, seed=self.run.seed, choices=self.label_options)
        # Before hours of embedding: the labels can be checked now.
        return resolve_labels(rows, self.label_options)[0]

    def embed(self, rows: TrainingRows) -> EmbeddedRows:
        """Embed all rows. Rows that are too long for the model are left out and listed."""
        with self._timed(Status.EMBEDDING):
            found = asyncio.run(embed_rows(self.held, self.run.classifier, rows, self.preparation))
        vectors = found.vectors
        rows, keep = resolve_labels(found.rows, self.label_options)  # some may have been too long
        if not keep.all():
            vectors = take_rows(vectors, keep)
        labels, codes = encode_labels(rows)
        width = int(vectors.shape[1])
        self._begin(
            Status.FITTING,
            seconds=self.seconds,
            **run_record.input_fields(rows, found, self.preparation, width),
        )
        return EmbeddedRows(
            rows,
            labels,
            codes,
            RowVectors.of_rows(rows, vectors),
            found.skipped_rows,
            found.embedder,
        )

    def fit(self, data: EmbeddedRows) -> trainer.Fit:
        train = data.rows.train
        with self._timed(Status.FITTING):
            fit = trainer.fit(
                data.vectors.train,
                data.codes[train],
                data.rows.groups[train],
                options=self.options,
                report=ProgressReporter(self.held),
            )
        self._begin(Status.EVALUATING, total=evaluate_run.STEPS, seconds=self.seconds)
        return fit

    def evaluate(self, data: EmbeddedRows, fit: trainer.Fit) -> evaluate_run.RunEvaluation:
        with self._timed(Status.EVALUATING):
            return evaluate_run.evaluate(
                data.rows,
                data.labels,
                data.codes,
                data.vectors,
                fit,
                self.options,
                report=ProgressReporter(self.held),
            )

    def store(
        self, data: EmbeddedRows, fit: trainer.Fit, evaluation: evaluate_run.RunEvaluation
    ) -> predictor.Predictor:
        """Write the classifier, its row results and the run, which is then ready."""
        folder = Path(settings.CLASSIFIERS_DIR)
        stored = run_record.build_predictor(
            data, fit, evaluation, self.preparation, balanced=self.options.balanced
        )
        predictor_file.save(folder, self.run.artefact, stored)
        row_results.save(folder, self.run.artefact, evaluation.row_results)
        chosen = choose_thresholds(self.run, evaluation.row_results, data.labels)
        held_back = held_back_notes(self.run, evaluation.row_results, data.labels)
        self._finish(
            goes_live=not held_back,
            seconds=self.seconds,
            thresholds=chosen.as_dict(),
            review_queue=build_review_queue(data, fit, evaluation.row_results),
            fit=run_record.fit_summary(data, fit, held_back=bool(held_back)),
            notes=run_notes(held_back, chosen, data, evaluation),
            **run_record.result_fields(evaluation),
        )
        return stored

    @transaction.atomic
    def _finish(self, *, goes_live: bool, **values: Any) -> None:
        """Make the run ready, and live unless a person pinned another or it is worse."""
        self.held.end(TaskState.DONE)
        self._write(status=Status.READY, finished=timezone.now(), **values)
        if goes_live:
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
        started = time.monotonic()
        yield
        self.seconds[stage.value] = round(time.monotonic() - started, 2)
