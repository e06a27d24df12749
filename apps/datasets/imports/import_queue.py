"""The queue of imports: small uploads need none, others wait for a worker."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from apps import files
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.models import IN_PROGRESS, Upload, UploadState
from apps.files import ReadOptions

# Imported while the person waits: a second or two. Bytes alone say little about a Parquet file.
SMALL_BYTES = 2 * 1024 * 1024
SMALL_ROWS = 30_000
WAKE_AFTER = timedelta(seconds=45)


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


def enqueue_import(upload: Upload, options: ImportOptions) -> bool:
    """Queue an upload for the workers; `tasks.wake_import` notifies them.

    Pressing Import twice imports once.

    Returns:
        True if it was waiting and is queued now.

    Raises:
        FormatError: a file cannot be read, or lacks a column.
    """
    check_files(upload, options)
    waiting = Upload.objects.filter(
        pk=upload.pk, state__in=[UploadState.WAITING, UploadState.FAILED]
    )
    return bool(
        waiting.update(
            state=UploadState.QUEUED,
            import_options=options.to_json(),
            error="",
            attempts=0,
            done_rows=0,
            done_share=0,
            started=None,
            cancelled=False,
            enqueued_at=timezone.now(),
        )
    )


def abandoned_imports() -> list[str]:
    """Return imports that no worker holds: a message was lost, or a worker died."""
    now = timezone.now()
    waiting = Upload.objects.filter(state__in=IN_PROGRESS, enqueued_at__lt=now - WAKE_AFTER).filter(
        Q(lease_until=None) | Q(lease_until__lt=now)
    )
    found = [str(pk) for pk in waiting.values_list("pk", flat=True)]
    Upload.objects.filter(pk__in=found).update(enqueued_at=now)
    return found
