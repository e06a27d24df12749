"""Files of programs on disk: stored under limits, found by their owner, removed in time."""

import os
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, Sum
from django.utils import timezone

from apps.core import quotas
from apps.core.errors import DomainError
from apps.core.models import OwnedQuerySet
from apps.gateway.files.public_ids import read_public_id
from apps.gateway.models import FILE_PREFIX, ProgramFile

MB = 1024**2
# As large as OpenAI takes them.
MAX_MB = 200
LIFETIME = timedelta(days=30)
MAX_NAME = 200
STRAY_SECONDS = 24 * 3600


class FileTooLarge(DomainError):
    status = 413
    code = "file_too_large"


def files_of(owner: User) -> OwnedQuerySet[ProgramFile]:
    """Query the files of a person that have not expired."""
    unexpired = Q(expires=None) | Q(expires__gt=timezone.now())
    return ProgramFile.objects.owned_by(owner).filter(unexpired)


def find_file(owner: User, public_id: str) -> ProgramFile | None:
    """Return a file of a person by its name in the API; None where they have no such file."""
    key = read_public_id(public_id, FILE_PREFIX)
    return None if key is None else files_of(owner).filter(key=key).first()


def store_file(
    owner: User, name: str, pieces: Iterable[bytes], *, lifetime: timedelta = LIFETIME
) -> ProgramFile:
    """Store an uploaded file.

    Raises:
        FileTooLarge: it is, or all files of the person are together.
        LimitReached: the person has too many files.
    """
    remove_expired_files()
    _check_room(owner, 0)
    file = ProgramFile(owner=owner, name=_display_name(name), expires=timezone.now() + lifetime)
    try:
        file.size = _write(file, pieces)
        with quotas.counting(owner):
            _check_room(owner, file.size)
            file.save(force_insert=True)
    except BaseException:
        file.path.unlink(missing_ok=True)
        raise
    return file


def _check_room(owner: User, size: int) -> None:
    """Check that a person may have one more file, of this size."""
    mine = files_of(owner)
    quotas.check("files", mine.count())
    stored = mine.aggregate(size=Sum("size"))["size"] or 0
    if stored + size > settings.PROGRAM_FILES_MB * MB:
        raise FileTooLarge(
            f"Your files would be larger than {settings.PROGRAM_FILES_MB} MB together. "
            "Delete some with DELETE /v1/files/{file_id}."
        )


def _display_name(name: str) -> str:
    return Path(name.replace("\\", "/").replace("\0", "")).name[:MAX_NAME] or "file"


def open_new(file: ProgramFile) -> BinaryIO:
    """Open a file on disk that does not exist yet, for its owner alone."""
    file.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _write(file: ProgramFile, pieces: Iterable[bytes]) -> int:
    """Write a file. Returns its size in bytes."""
    size = 0
    with open_new(file) as out:
        for piece in pieces:
            size += len(piece)
            if size > MAX_MB * MB:
                raise FileTooLarge(
                    f"The file is larger than {MAX_MB} MB. Split it into several batches."
                )
            out.write(piece)
    return size


def remove_file(file: ProgramFile) -> None:
    """Delete a file. Rows that were made of it stay."""
    file.delete()
    file.path.unlink(missing_ok=True)


def remove_expired_files() -> None:
    for file in ProgramFile.objects.filter(expires__lte=timezone.now()):
        remove_file(file)


def remove_strays() -> None:
    """Remove from disk what processes that were killed left there: no row names it."""
    folder = Path(settings.PROGRAM_FILES_DIR)
    if not folder.exists():
        return
    old = time.time() - STRAY_SECONDS
    found = {path.name: path for path in folder.iterdir() if path.stat().st_mtime < old}
    known = {key.hex for key in ProgramFile.objects.values_list("key", flat=True)}
    for name in found.keys() - known:
        found[name].unlink(missing_ok=True)
