"""Training and large files in the background. The row is the truth; a message only wakes."""

import logging
from pathlib import Path

from celery import shared_task
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.classifiers import services
from apps.classifiers.models import FilePrediction, Run
from apps.classifiers.prediction import file_predictions, predictor
from apps.classifiers.training import near_duplicate_search
from apps.classifiers.training import run as training_run
from apps.classifiers.transfer import convert as transfer_convert
from apps.datasets import near_duplicates

log = logging.getLogger(__name__)


@shared_task(name="apps.classifiers.tasks.train_run")
def train_run(run_id: int) -> None:
    training_run.train(run_id)


@shared_task(name="apps.classifiers.tasks.predict_file")
def predict_file(file_id: int) -> None:
    file_predictions.work(file_id)


@shared_task(name="apps.classifiers.tasks.convert")
def convert(run_id: int) -> None:
    """Writes the files of other libraries for an older or an imported classifier."""
    run = Run.objects.filter(pk=run_id).only("pk").first()
    if run is not None:
        folder = Path(settings.CLASSIFIERS_DIR)
        transfer_convert.write(folder, run.artefact, predictor.load(folder, run.artefact))


@shared_task(name="apps.classifiers.tasks.resume_training")
def resume_training() -> None:
    """Tells the workers again of runs and files that nobody works on."""
    for run_id in services.forgotten(Run):
        train_run.delay(run_id)
    for file_id in services.forgotten(FilePrediction):
        predict_file.delay(file_id)


@shared_task(name="apps.classifiers.tasks.find_near_copies")
def find_near_copies(dataset_id: int) -> None:
    near_duplicate_search.find(dataset_id)


def wake_near_copies(dataset_id: int) -> None:
    try:
        transaction.on_commit(lambda: find_near_copies.delay(dataset_id))
    except OperationalError:
        near_duplicates.fail(
            dataset_id, "The job could not be queued. Check that Redis is running, then try again."
        )


def wake_converting(run: Run) -> None:
    try:
        convert.delay(run.pk)
    except OperationalError:
        log.exception("No worker could be told to write the files of run %s.", run.pk)


def wake(work: Run | FilePrediction) -> None:
    """Tells a worker of a run or a file, once the transaction that made it is over."""
    task = train_run if isinstance(work, Run) else predict_file
    try:
        transaction.on_commit(lambda: task.delay(work.pk))
    except OperationalError:
        # It is in the database: `resume_training` tells it again when the broker is back.
        log.exception("%s %s could not be announced; it will be, later.", task.name, work.pk)
