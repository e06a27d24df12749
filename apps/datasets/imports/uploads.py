"""Uploaded files that are not a dataset yet."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from apps import files as apps_files
from apps.datasets.errors import UploadTooLarge
from apps.datasets.models import DatasetState, TaskKind, Upload, UploadedPart
from apps.datasets.rows.removal import queue_removal
from apps.work import services as work
from apps.work.models import ACTIVE, TaskState

# An upload that is never imported is removed at a later upload.
UPLOAD_LIFETIME = timedelta(days=1)
MAX_FILES = 20


def store_upload(*, owner: User, files: "Sequence[File[bytes]]") -> Upload:
    """Store uploaded files, under names of our own, until they are imported.

    Raises:
        UploadTooLarge: more files or more bytes than an upload may have.
    """
    remove_old_uploads(owner)
    if len(files) > MAX_FILES:
        raise UploadTooLarge(f"Too many files: {len(files)}. The limit is {MAX_FILES} per upload.")
    names = [_display_name(file) for file in files]
    upload = Upload(owner=owner, file_name=", ".join(names)[:200], size=0)
    upload.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    parts = []
    try:
        for place, (file, name) in enumerate(zip(files, names, strict=True)):
            before = upload.size
            _store(upload, place, file)
            split = apps_files.split_of_file_name(name) if len(files) > 1 else None
            parts.append(UploadedPart(name=name, size=upload.size - before, split=split or ""))
        if len(files) > 1:
            upload.parts = parts
        upload.save(force_insert=True)
    except BaseException:
        for place in range(len(files)):
            upload.path_of(place).unlink(missing_ok=True)
        raise
    return upload


def _display_name(file: "File[bytes]") -> str:
    return (Path((file.name or "file").replace("\\", "/").replace("\0", "")).name or "file")[:200]


def _store(upload: Upload, place: int, file: "File[bytes]") -> None:
    path = upload.path_of(place)
    with path.open("xb") as out:
        path.chmod(0o600)
        for chunk in file.chunks():
            upload.size += len(chunk)
            if upload.size > settings.UPLOAD_LIMIT_BYTES:
                limit = settings.UPLOAD_LIMIT_BYTES // 1024**2
                raise UploadTooLarge(
                    f"The upload is larger than the limit of {limit} MB. Split it into several "
                    "datasets."
                )
            out.write(chunk)


def remove_upload(upload: Upload) -> None:
    """Delete an upload with its import; a worker removes the rows of an unfinished one."""
    remove_files(upload)
    with transaction.atomic():
        work.discard(TaskKind.IMPORT, [upload.pk])
        if upload.dataset is not None:
            upload.dataset.refresh_from_db(fields=["state"])
            if upload.dataset.state != DatasetState.READY:
                queue_removal(upload.dataset)
        upload.delete()


def remove_files(upload: Upload) -> None:
    for place in range(len(upload.files)):
        upload.path_of(place).unlink(missing_ok=True)


def remove_old_uploads(owner: User) -> None:
    old = Upload.objects.owned_by(owner).filter(created__lt=timezone.now() - UPLOAD_LIFETIME)
    for upload in old.exclude(task__state__in=ACTIVE):
        remove_upload(upload)


def list_imports(owner: User) -> list[Upload]:
    """Return imports in progress or failed, for the list of datasets."""
    shown = [*ACTIVE, TaskState.FAILED]
    mine = Upload.objects.owned_by(owner).select_related("task")
    return list(mine.filter(task__state__in=shown))
