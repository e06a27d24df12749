"""Lines of a text file, in bounded memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from apps.files.errors import FormatError
from apps.files.layout import MAX_LINE

MIN_LINE_COST = 80  # characters


def open_text(path: Path, encoding: str) -> TextIO:
    """Open a file whose undecodable bytes are kept as surrogates, and line breaks as they are."""
    return path.open(encoding=encoding, errors="surrogateescape", newline="")


class BoundedLines:
    """The lines of a file, without those that are too long to be held in memory.

    `skipped` holds, for each of those, how many lines were yielded before it.
    """

    def __init__(self, file: TextIO, *, max_characters: int | None = None) -> None:
        """
        Args:
            max_characters: stop after about so many; None reads all. A short line counts as
                `MIN_LINE_COST`, since each line costs time.
        """
        self._file = file
        self._left = max_characters
        self.yielded = 0
        self.skipped: list[int] = []

    def __iter__(self) -> Iterator[str]:
        while line := self._readline():
            if len(line) < MAX_LINE:
                self.yielded += 1
                yield line
                continue
            while line and not line.endswith(("\n", "\r")):
                line = self._readline()
            self.skipped.append(self.yielded)

    def with_gaps(self) -> Iterator[str | None]:
        """Yield the lines, and None in place of each that is too long."""
        reported = 0
        for line in self:
            for _ in self.skipped[reported:]:
                yield None
            reported = len(self.skipped)
            yield line
        for _ in self.skipped[reported:]:
            yield None

    def _readline(self) -> str:
        if self._left is not None and self._left <= 0:
            return ""
        try:
            line = self._file.readline(MAX_LINE)
        except UnicodeError as error:
            raise FormatError(f"The file is incomplete or damaged: {error}.") from error
        if self._left is not None:
            self._left -= max(len(line), MIN_LINE_COST)
        return line
