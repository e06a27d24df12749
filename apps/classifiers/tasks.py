"""Training in the background. The run's row is the truth; a message only wakes a worker."""

import logging

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.classifiers import services, training
from apps.classifiers.models import Run

log = logging.getLogger(__name__)


@shared_task(name="apps.classifiers.tasks.train_run")
def train_run(run_id: int) -> None:
    training.train(run_id)


@shared_task(name="apps.classifiers.tasks.resume_training")
def resume_training() -> None:
    """Tells the workers again of runs that nobody works on."""
    for run_id in services.forgotten_runs():
        train_run.delay(run_id)


def wake(run: Run) -> None:
    """Tells a worker of a run, once the transaction that made it is over."""
    try:
        transaction.on_commit(lambda: train_run.delay(run.pk))
    except OperationalError:
        # The run is in the database: `resume_training` tells it again when the broker is back.
        log.exception("Run %s could not be announced; it will be, later.", run.pk)
