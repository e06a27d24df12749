"""Training and large files in the background. The row is the truth; a message only wakes."""

import logging
from pathlib import Path

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from apps.classifiers.models import Run, TaskKind
from apps.classifiers.prediction import predictor_file
from apps.classifiers.transfer import convert as transfer_convert
from apps.datasets.hooks import NEAR_DUPLICATE_SEARCH
from apps.work import services as work

log = logging.getLogger(__name__)


# Announced by versions before the durable task. Queued messages may still carry these names.
@shared_task(name="apps.classifiers.tasks.train_run")
def train_run(run_id: int) -> None:
    work.run_subject(TaskKind.TRAINING, run_id)


@shared_task(name="apps.classifiers.tasks.predict_file")
def predict_file(file_id: int) -> None:
    work.run_subject(TaskKind.FILE_PREDICTION, file_id)


@shared_task(name="apps.classifiers.tasks.resume_training")
def resume_training() -> None:
    """Do nothing: `apps.work.tasks.sweep` resumes runs and files."""


@shared_task(name="apps.classifiers.tasks.convert")
def convert(run_id: int) -> None:
    """Writes the files of other libraries for an older or an imported classifier."""
    run = Run.objects.filter(pk=run_id).only("pk").first()
    if run is not None:
        folder = Path(settings.CLASSIFIERS_DIR)
        transfer_convert.write(folder, run.artefact, predictor_file.load(folder, run.artefact))


@shared_task(name="apps.classifiers.tasks.find_near_copies")
def find_near_copies(dataset_id: int) -> None:
    """Search as a message of an older version asked."""
    work.enqueue(NEAR_DUPLICATE_SEARCH, dataset_id, send=False)
    work.run_subject(NEAR_DUPLICATE_SEARCH, dataset_id)


def wake_converting(run: Run) -> None:
    try:
        convert.delay(run.pk)
    except OperationalError:
        log.exception("No worker could be told to write the files of run %s.", run.pk)
