"""The description of a layout, and the counts of lines."""

import pytest

from apps.files import FileKind, Layout, LineCounts, Quoting

TWO = ("text", "label")


@pytest.mark.parametrize(
    ("layout", "description"),
    [
        (Layout(FileKind.CSV, "cp1252", TWO, ";"),
         "CSV separated by semicolon, with a header, Windows-1252"),
        (Layout(FileKind.CSV, "utf-8-sig", TWO, header=False, quoting=Quoting.NONE),
         "CSV separated by comma, quotes read as characters, without a header, UTF-8"),
        (Layout(FileKind.CSV, "utf-8-sig", ("text",)), "CSV with one column, with a header, UTF-8"),
        (Layout(FileKind.TEXT, "utf-16", ("text",), byte_order_mark=True),
         "Plain text, one text per line, UTF-16 with a byte order mark"),
        (Layout(FileKind.JSONL, "utf-8-sig", TWO), "JSONL, UTF-8"),
        (Layout(FileKind.JSON, "utf-8-sig", TWO, list_path="data"),
         "JSON, a list of rows in “data”, UTF-8"),
        (Layout(FileKind.PARQUET, "", TWO), "Parquet with 2 columns"),
        (Layout(FileKind.EXCEL, "", TWO, sheets=("A", "B"), sheet="B", formulas=True),
         "Excel, sheet “B”, with a header; formulas are read as their saved values"),
        (Layout(FileKind.EXCEL, "", TWO, sheets=("A",), sheet="A"), "Excel, with a header"),
    ],
)  # fmt: skip
def test_description(layout: Layout, description: str) -> None:
    assert layout.description == description


def test_selectable_columns_are_plain_ones_and_paths() -> None:
    layout = Layout(
        FileKind.JSON, "", ("text", "data"), paths=("data.label",), object_columns=("data",)
    )
    assert layout.selectable_columns == ("text", "data.label")


@pytest.mark.parametrize(
    ("lines", "rows", "description"),
    [
        (1, [1], "1 line, 1 row."),
        (1_200, [1] * 3, "1,200 lines, 3 rows."),
        (9, [4, 1], "9 lines, 2 rows. 1 row holds line breaks, the longest 4 lines."),
        (9, [4, 5], "9 lines, 2 rows. 2 rows hold line breaks, the longest 5 lines."),
    ],
)
def test_line_counts_describe_themselves(lines: int, rows: list[int], description: str) -> None:
    counts = LineCounts(lines=lines)
    for number, length in enumerate(rows, start=2):
        counts.add(number, length, suspect=False)
    assert counts.description == description


def test_line_counts_list_the_first_suspects() -> None:
    counts = LineCounts()
    for number in range(100):
        counts.add(number, 1, suspect=number % 2 == 0)
    assert counts.suspects == list(range(0, 40, 2))
