"""From an upload to a dataset: a small one at once, a large one by a worker, in chunks.

A large import commits every few thousand rows, so that others can write meanwhile. Its dataset is
marked as importing and hidden until the last row is in. A worker holds the upload by a lease whose
token is in every commit; if it dies, the next worker removes what was written and starts again.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps import files
from apps.datasets.errors import NothingUsable
from apps.datasets.imports.chunks import read_chunks
from apps.datasets.imports.dataset_writer import DatasetWriter
from apps.datasets.imports.import_queue import enqueue_import
from apps.datasets.imports.lease import LEASE, ImportLease, LeaseLost
from apps.datasets.imports.notes import import_notes
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.imports.uploads import remove_files, remove_upload
from apps.datasets.models import IN_PROGRESS, Dataset, DatasetState, Upload, UploadState
from apps.datasets.rows.removal import remove_in_pieces
from apps.files import FormatError, Layout, LineCounts

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3


def import_upload(upload: Upload, options: ImportOptions) -> Dataset:
    """Import a small upload, all of it or nothing, and remove its files.

    The person waits. If this process is killed, a worker continues.

    Raises:
        FormatError: a file cannot be read, lacks a column, or is being imported already.
        NothingUsable: no row can be used, or there are too many labels.
    """
    if not enqueue_import(upload, options):
        raise FormatError("This upload is being imported already.")
    lease = ImportLease.claim(str(upload.pk))
    if lease is None:
        raise FormatError("This upload is being imported already.")
    upload.refresh_from_db()
    try:
        dataset = _import(upload, lease)
    except LeaseLost as error:
        _undo(upload)
        remove_upload(upload)
        raise FormatError("The import was cancelled.") from error
    except BaseException:
        _undo(upload)
        with suppress(LeaseLost):
            lease.write(state=UploadState.WAITING, import_options={}, lease=None, lease_until=None)
        raise
    upload.delete()
    return dataset


def cancel_import(upload: Upload) -> None:
    """Cancel an import: at once if no worker holds it, else before its next chunk."""
    Upload.objects.filter(pk=upload.pk, state__in=IN_PROGRESS).update(cancelled=True)
    now = timezone.now()
    idle = Upload.objects.filter(pk=upload.pk).filter(Q(lease=None) | Q(lease_until__lt=now))
    if idle.update(lease=uuid.uuid4(), lease_until=now + LEASE):
        upload.refresh_from_db()
        _undo(upload)
        remove_upload(upload)


def run_import(upload_id: str) -> None:
    """Import an upload as a worker; does nothing if another worker holds it or it is done."""
    lease = ImportLease.claim(upload_id)
    if lease is None:
        return
    upload = Upload.objects.get(pk=upload_id)
    try:
        if upload.attempts > MAX_ATTEMPTS:
            raise FormatError(
                f"The worker crashed {MAX_ATTEMPTS} times during this import. Check the available "
                "memory and the worker log."
            )
        _undo(upload, lease.renew)
        _import(upload, lease)
    except LeaseLost:
        if Upload.objects.filter(pk=upload_id, lease=lease.token, cancelled=True).exists():
            upload.refresh_from_db()
            _undo(upload)
            remove_upload(upload)
        else:
            log.warning("Import %s was taken over or ended by somebody else.", upload_id)
    except (FormatError, NothingUsable) as error:
        _fail(upload, lease, str(error))
    except Exception:
        _fail(
            upload,
            lease,
            "Something went wrong. Nothing was imported. Details are in the worker log.",
        )
        raise


def _import(upload: Upload, lease: ImportLease) -> Dataset:
    options = ImportOptions.from_json(upload.import_options)
    layouts = check_files(upload, options)
    if options.read.encoding is None:
        for place, layout in enumerate(layouts):
            encoding = files.confirm_encoding(upload.path_of(place), layout.encoding)
            layouts[place] = replace(layout, encoding=encoding)
            lease.renew()
    with transaction.atomic():
        dataset = _new_dataset(upload, options, layouts, DatasetState.IMPORTING)
        lease.write(dataset=dataset, state=UploadState.IMPORTING, started=timezone.now())
    upload.dataset = dataset
    writer = DatasetWriter(
        dataset, mapping=options.mapping, unlabelled=options.mapping.accepts_unlabelled
    )
    counts = [LineCounts() for _ in layouts]
    for chunk in read_chunks(upload, options, layouts, counts):
        with transaction.atomic():
            lease.write(done_rows=chunk.rows[-1][0], done_share=chunk.share)
            writer.write(chunk.rows, file=chunk.file, split=chunk.split)
    with transaction.atomic():
        writer.finish(import_notes(upload, layouts, counts))
        Dataset.objects.filter(pk=dataset.pk).update(state=DatasetState.READY)
        lease.write(state=UploadState.DONE, done_share=1.0, lease=None, lease_until=None)
    remove_files(upload)
    dataset.state = DatasetState.READY
    return dataset


def _fail(upload: Upload, lease: ImportLease, error: str) -> None:
    try:
        _undo(upload, lease.renew)
        lease.write(state=UploadState.FAILED, error=error, lease=None, lease_until=None)
    except LeaseLost:
        log.warning("Import %s had ended before.", upload.pk)


def _undo(upload: Upload, tick: Callable[[], None] = lambda: None) -> None:
    """Remove the rows that an import wrote."""
    dataset = upload.dataset
    if dataset is not None and dataset.state != DatasetState.READY:
        remove_in_pieces(dataset, tick)
        upload.dataset = None


def _new_dataset(
    upload: Upload, options: ImportOptions, layouts: Sequence[Layout], state: DatasetState
) -> Dataset:
    extra: dict[str, None] = {}
    for layout in layouts:
        extra |= dict.fromkeys(files.extra_columns(layout, options.mapping))
    return Dataset.objects.create(
        owner_id=upload.owner_id,
        name=options.name[:200],
        origin=upload.file_name[:300],
        state=state,
        extra_columns=list(extra),
    )
