import asyncio
from pathlib import Path

from apps.embedded.processes.process_log import CHUNK_BYTES, ProcessLog, lines


async def read(*chunks: bytes) -> list[str]:
    stream = asyncio.StreamReader()
    for chunk in chunks:
        stream.feed_data(chunk)
    stream.feed_eof()
    return [line async for line in lines(stream)]


async def test_lines_are_put_together() -> None:
    assert await read(b"on", b"e\ntw", b"o\r\n\nthree") == ["one", "two", "", "three"]


async def test_a_line_without_end_does_not_fill_the_memory() -> None:
    pieces = await read(b"x" * (3 * CHUNK_BYTES + 1))

    assert len(pieces) == 4
    assert sum(map(len, pieces)) == 3 * CHUNK_BYTES + 1


async def test_what_would_act_on_a_terminal_is_shown_instead() -> None:
    assert await read(b"\x1b[31mred\x1b[0m\tand\xff\n") == [
        "?[31mred?[0m\tand\N{REPLACEMENT CHARACTER}"
    ]


def test_each_line_has_its_time_and_process(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "logs" / "workbench.log")
    log.write("web", "started 100%")
    log.close()

    date, clock, process, *rest = log.path.read_text().split()
    assert len(date) == len("2026-01-01")
    assert len(clock) == len("12:00:00,000")
    assert (process, rest) == ("web", ["started", "100%"])


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "workbench.log", file_bytes=1000)
    for number in range(1000):
        log.write("web", f"line {number}")
    log.close()

    files = sorted(tmp_path.iterdir())
    assert len(files) == 6
    assert all(file.stat().st_size <= 1000 for file in files)
    assert "line 999" in (tmp_path / "workbench.log").read_text()
