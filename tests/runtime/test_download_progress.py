"""The file by which a download tells the pages how far it is."""

from pathlib import Path

import pytest

from apps.runtime.download_progress import (
    MAX_BYTES,
    MAX_CHARACTERS,
    DownloadProgress,
    progress_file,
    read_progress,
    write_progress,
)


@pytest.mark.parametrize(
    ("done", "total", "sentence"),
    [
        (0, None, "Downloading a/b:m.gguf"),
        (0, 2_800_000_000, "Downloading a/b:m.gguf: 0% (0.0 of 2.8 GB)"),
        (1_204_000_000, 2_800_000_000, "Downloading a/b:m.gguf: 43% (1.2 of 2.8 GB)"),
        (45_000_000, 90_000_000, "Downloading a/b:m.gguf: 50% (45.0 of 90.0 MB)"),
    ],
)
def test_progress_as_a_sentence(done: int, total: int | None, sentence: str) -> None:
    assert str(DownloadProgress(model="a/b:m.gguf", done=done, total=total)) == sentence


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = progress_file(tmp_path, 7001)
    progress = DownloadProgress(model="a/b:m.gguf", done=1, total=2)
    write_progress(path, progress)

    assert read_progress(path) == progress
    assert path.stat().st_mode & 0o077 == 0


def test_texts_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    write_progress(path, DownloadProgress(model="é" * 5000, error="é" * 5000))

    read = read_progress(path)
    assert read is not None
    assert len(read.model) == len(read.error) == MAX_CHARACTERS


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"done": 1}', b'{"model": "m", "x": 1}', b" " * MAX_BYTES * 2]
)
def test_an_unreadable_file_tells_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "1.json"
    assert read_progress(path) is None
    path.write_bytes(content)
    assert read_progress(path) is None
