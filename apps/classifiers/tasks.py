"""Messages of versions before the durable task, which may still be queued under these names."""

from celery import shared_task

from apps.classifiers.models import TaskKind
from apps.datasets.hooks import NEAR_DUPLICATE_SEARCH
from apps.work import services as work


@shared_task(name="apps.classifiers.tasks.train_run")
def train_run(run_id: int) -> None:
    work.run_subject(TaskKind.TRAINING, run_id)


@shared_task(name="apps.classifiers.tasks.predict_file")
def predict_file(file_id: int) -> None:
    work.run_subject(TaskKind.FILE_PREDICTION, file_id)


@shared_task(name="apps.classifiers.tasks.resume_training")
def resume_training() -> None:
    """Do nothing: `apps.work.tasks.sweep` resumes runs and files."""


@shared_task(name="apps.classifiers.tasks.find_near_copies")
def find_near_copies(dataset_id: int) -> None:
    """Search as a message of an older version asked."""
    work.enqueue(NEAR_DUPLICATE_SEARCH, dataset_id, send=False)
    work.run_subject(NEAR_DUPLICATE_SEARCH, dataset_id)
