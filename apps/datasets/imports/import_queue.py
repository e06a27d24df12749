"""The queue of imports: small uploads need none, others wait for a worker."""

from django.db import transaction

from apps import files
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.models import TaskKind, Upload
from apps.files import ReadOptions
from apps.work import services as work

# Imported while the person waits: a second or two. Bytes alone say little about a Parquet file.
SMALL_BYTES = 2 * 1024 * 1024
SMALL_ROWS = 30_000


def is_small(upload: Upload, read: ReadOptions | None = None) -> bool:
    """Return True if an upload can be imported while the person waits.

    Raises:
        FormatError: a file cannot be read.
    """
    if upload.size > SMALL_BYTES:
        return False
    rows = 0
    for place, file in enumerate(upload.files):
        path = upload.path_of(place)
        rows += files.estimate_rows(
            path, files.detect_layout(path, name=file["name"], options=read or ReadOptions())
        )
    return rows <= SMALL_ROWS


def enqueue_import(upload: Upload, options: ImportOptions, *, send: bool = True) -> bool:
    """Queue an import for the workers. Pressing Import twice imports once.

    Args:
        send: announce it to the workers after the commit. False if this process imports it.

    Returns:
        True if the upload was waiting and is queued now.

    Raises:
        FormatError: a file cannot be read, or lacks a column.
    """
    check_files(upload, options)
    with transaction.atomic():
        task = work.enqueue(
            TaskKind.IMPORT,
            upload.pk,
            owner=upload.owner,
            options=options.to_json(),
            send=send,
            repeat=False,
        )
        if task is None:
            return False
        upload.task = task
        upload.save(update_fields=["task"])
    return True
