"""Files that are complete or absent, and generators that run in threads."""

import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from apps.runtime import atomic_file
from apps.runtime.async_db import in_db, stream_from_thread
from apps.runtime.atomic_file import write_atomically


def test_write_atomically_makes_folders_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "secret"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o077 == 0
    assert list(path.parent.iterdir()) == [path]


def test_write_atomically_keeps_the_old_file_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.django_db(transaction=True)
async def test_in_db_runs_in_another_thread_and_passes_errors_on() -> None:
    assert await in_db(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await in_db(lambda: 1 // 0)


@pytest.mark.django_db(transaction=True)
async def test_stream_from_thread_yields_pieces_as_they_come() -> None:
    def pieces() -> Generator[bytes]:
        yield b"a"
        yield b"b"

    assert [piece async for piece in stream_from_thread(pieces())] == [b"a", b"b"]


@pytest.mark.django_db(transaction=True)
async def test_stream_from_thread_closes_the_generator_of_a_reader_who_left() -> None:
    ended = []

    def pieces() -> Generator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            ended.append(True)

    stream = stream_from_thread(pieces())
    assert await anext(stream) == b"x"
    await stream.aclose()  # type: ignore[attr-defined]
    assert ended == [True]
