"""Lines in bounded memory, and the cells of one line."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.files.readers import lines as reader
from apps.files.readers.line_cells import split_line
from apps.files.readers.lines import BoundedLines


@pytest.fixture
def _short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE", 10)


@pytest.mark.usefixtures("_short_lines")
def test_a_line_that_is_too_long_leaves_a_gap() -> None:
    lines = BoundedLines(io.StringIO(f"one\n{'x' * 35}\ntwo\n{'y' * 12}", newline=""))
    assert list(lines.with_gaps()) == ["one\n", None, "two\n", None]
    assert (lines.yielded, lines.skipped) == (2, [1, 2])


def test_reading_stops_after_so_many_characters() -> None:
    lines = BoundedLines(io.StringIO("a\n" * 100), max_characters=10 * reader.MIN_LINE_COST)
    assert len(list(lines)) == 10


@given(st.lists(st.text("ab,; ", max_size=8), min_size=1, max_size=6))
def test_split_line_without_quotes_splits_at_every_separator(cells: list[str]) -> None:
    line = ";".join(cells)
    assert split_line(f"{line}\r\n", ";").cells == line.split(";")


@given(st.lists(st.text('ab," ', max_size=8), min_size=1, max_size=6))
def test_split_line_reads_back_quoted_cells(cells: list[str]) -> None:
    written = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    found = split_line(written, ",")
    assert (found.cells, found.quoted, found.stray) == (cells, len(cells), False)


@pytest.mark.parametrize(
    ("line", "cells", "stray", "opened"),
    [
        ('a,"b', ["a", '"b'], True, 2),
        ('"a"b,c', ['"a"b', "c"], True, -1),
        ('say "hi",c', ['say "hi"', "c"], False, -1),
        ('"a" ,b', ["a ", "b"], False, -1),
        ("", [""], False, -1),
    ],
)
def test_split_line_reads_stray_quotes_as_characters(
    line: str, cells: list[str], stray: bool, opened: int
) -> None:
    found = split_line(line, ",")
    assert (found.cells, found.stray, found.opened) == (cells, stray, opened)
