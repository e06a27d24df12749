"""Limits on the depth and text length of a JSON file, for its parser. Pure.

ijson stores the path to each open level, and yajl reads an unfinished text again with each chunk of
the file: both are quadratic in hostile input. So each chunk is scanned first, at the speed of `re`
and `bytes.translate`.
"""

import re
from itertools import accumulate
from typing import IO

MAX_DEPTH = 100
MAX_TEXT_BYTES = 32 * 1024**2
PIECE_BYTES = 256 * 1024

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_TEXT = re.compile(rb'"[^"]*"')
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class TooMuch(ValueError):
    """A file that is too large or too deep. The message is a sentence."""


class Guarded:
    """A file for ijson that raises TooMuch at its limits."""

    def __init__(self, file: IO[bytes], most_bytes: int) -> None:
        self._file = file
        self._left = most_bytes
        self._most = most_bytes
        self._depth = 0
        self._in_text = False
        self._text_bytes = 0
        self._escaped = b""

    def read(self, size: int = PIECE_BYTES) -> bytes:
        """Return the next chunk.

        Raises:
            TooMuch: the file exceeds a limit.
        """
        piece = self._file.read(PIECE_BYTES if size < 0 else min(size, PIECE_BYTES))
        self._left -= len(piece)
        if self._left < 0:
            raise TooMuch(f"The file is larger than {self._most // 1024**2:,} MB unpacked.")
        if piece:
            self._scan(piece)
        return piece

    def _scan(self, piece: bytes) -> None:
        rest = _ESCAPE.sub(b"", self._escaped + piece)
        self._escaped = b"\\" if rest.endswith(b"\\") else b""
        self._count_text(rest)
        structure = rest.translate(None, _NOT_STRUCTURE)
        if self._in_text:  # up to the end of the text that began before
            structure = b'"' + structure
        structure = _TEXT.sub(b"", structure)
        structure, quote, _ = structure.partition(b'"')  # after an open one all is text
        self._in_text = bool(quote)
        if not structure:
            return
        depths = accumulate((_STEPS[byte] for byte in structure), initial=self._depth)
        deepest = self._depth
        for self._depth in depths:
            deepest = max(deepest, self._depth)
        if deepest > MAX_DEPTH:
            raise TooMuch(f"The file is nested deeper than {MAX_DEPTH} levels.")

    def _count_text(self, rest: bytes) -> None:
        """Count a text that spans chunks: within one chunk no text is too long."""
        if self._in_text and b'"' not in rest:
            self._text_bytes += len(rest)
            if self._text_bytes > MAX_TEXT_BYTES:
                raise TooMuch(f"A text in the file is longer than {MAX_TEXT_BYTES // 1024**2} MB.")
        else:
            self._text_bytes = 0
