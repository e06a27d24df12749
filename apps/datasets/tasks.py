"""Large imports and removals in the background. The row is the truth; a message only wakes."""

import logging
from collections.abc import Callable

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.datasets.imports import import_queue, importing
from apps.datasets.models import BulkChange, Dataset, Upload
from apps.datasets.rows import bulk_changes, change_plans, removal

log = logging.getLogger(__name__)


@shared_task(name="apps.datasets.tasks.import_upload")
def import_upload(upload_id: str) -> None:
    importing.run_import(upload_id)


@shared_task(name="apps.datasets.tasks.remove_dataset")
def remove_dataset(dataset_id: int) -> None:
    removal.finish_removal(dataset_id)


@shared_task(name="apps.datasets.tasks.change_rows")
def change_rows(change_id: int) -> None:
    bulk_changes.run_change(change_id, change_plans.PLANNERS)


@shared_task(name="apps.datasets.tasks.resume_imports")
def resume_imports() -> None:
    """Notify the workers again of imports, changes and removals that no worker holds."""
    for change_id in bulk_changes.abandoned_changes():
        change_rows.delay(change_id)
    for upload_id in import_queue.abandoned_imports():
        import_upload.delay(upload_id)
    for dataset_id in removal.unfinished_removals():
        remove_dataset.delay(dataset_id)


def wake_import(upload: Upload) -> None:
    """Notify a worker of an import, once the transaction that queued it is over."""
    _notify(lambda: import_upload.delay(str(upload.pk)))


def wake_change(change: BulkChange) -> None:
    _notify(lambda: change_rows.delay(change.pk))


def wake_removal(dataset: Dataset) -> None:
    _notify(lambda: remove_dataset.delay(dataset.pk))


def _notify(send: Callable[[], object]) -> None:
    def on_commit() -> None:
        try:
            send()
        except OperationalError:
            # The row holds what is to be done: `resume_imports` sends the message again.
            log.exception("A worker could not be notified; `resume_imports` will.")

    transaction.on_commit(on_commit)
