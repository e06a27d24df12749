"""Sends the content of a file in pieces."""

from collections.abc import Generator
from pathlib import Path

from django.http import StreamingHttpResponse

from apps.gateway.models import ProgramFile
from apps.runtime.async_db import stream_from_thread

PIECE_BYTES = 256 * 1024


def content_response(file: ProgramFile) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        stream_from_thread(_read(file.path)),
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Length": str(file.size),
            "X-Content-Type-Options": "nosniff",
        },
    )


def _read(path: Path) -> Generator[bytes]:
    with path.open("rb") as opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece
