"""Files of results: nobody sees one before it is saved with what it belongs to."""

from types import TracebackType
from typing import Self

from django.contrib.auth.models import User
from django.utils import timezone

from apps.gateway.files.store import LIFETIME, open_new
from apps.gateway.models import ProgramFile


class ResultFile:
    """Writes the lines of a file, as large as they are. Without `save` it is removed again."""

    def __init__(self, owner: User, name: str) -> None:
        self._file = ProgramFile(
            owner=owner,
            name=name,
            purpose=ProgramFile.Purpose.BATCH_OUTPUT,
            expires=timezone.now() + LIFETIME,
        )
        self._is_saved = False

    def __enter__(self) -> Self:
        self._out = open_new(self._file)
        return self

    def write(self, line: bytes) -> None:
        self._file.size += self._out.write(line)

    def save(self) -> ProgramFile | None:
        """Save the file, in the transaction that names it. None if it has no line."""
        self._out.close()
        if not self._file.size:
            return None
        self._file.save(force_insert=True)
        self._is_saved = True
        return self._file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._out.close()
        if error is not None or not self._is_saved:
            self._file.path.unlink(missing_ok=True)
