"""Checks of rows, and cells as text."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.files import (
    MAX_LABEL,
    MAX_TEXT,
    SPLITS,
    ColumnMapping,
    ExampleRow,
    RejectedRow,
    cell_text,
    check_row,
    label_key,
)

MAPPING = ColumnMapping("Frage", "Art", "Teil")


@given(st.text(max_size=40), st.text(max_size=20), st.none() | st.sampled_from(sorted(SPLITS)))
def test_a_row_that_passes_is_clean_and_passes_again(
    text: str, label: str, split: str | None
) -> None:
    found = check_row(ExampleRow(text, label, split), 1, unlabelled=True)
    if isinstance(found, RejectedRow):
        assert found.reason.endswith(".")
        return
    assert found.text == text
    assert found.label == " ".join(label.split())
    assert found.split in {None, "train", "validation", "test"}
    assert check_row(found, 1, unlabelled=True) == found


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        (ExampleRow(" \t", "a"), "Frage", "The text is empty."),
        (ExampleRow("x" * (MAX_TEXT + 1), "a"), "Frage", "the limit is 100,000"),
        (ExampleRow("a\0", "a"), "Frage", "NUL"),
        (ExampleRow("ä\0", "a"), "Frage", "NUL"),
        (ExampleRow("a\udce9", "a"), "Frage", "Byte 0xE9 is not valid"),
        (ExampleRow("a\ud83d", "a"), "Frage", "unpaired surrogate"),
        (ExampleRow("a", " "), "Art", "The label is empty."),
        (ExampleRow("a", "x" * (MAX_LABEL + 1)), "Art", "201 characters"),
        (ExampleRow("a", "b\0"), "Art", "NUL"),
        (ExampleRow("a", "b", "tset"), "Teil", "“tset” is not a valid split"),
    ],
)
def test_a_rejection_names_the_column_of_the_source(
    row: ExampleRow, column: str, reason: str
) -> None:
    found = check_row(row, 7, MAPPING)
    assert isinstance(found, RejectedRow)
    assert (found.row, found.column) == (7, column)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (7.0, "7"),
        (-0.5, "-0.5"),
        (1e20, "1e+20"),
        (float("nan"), ""),
        (float("inf"), ""),
        (12, "12"),
        (date(2026, 11, 23), "2026-11-23"),
        ("= 1", "= 1"),
    ],
)
def test_cell_text(value: Any, text: str) -> None:
    assert cell_text(value) == text


@pytest.mark.parametrize("label", ["Card lost", "card_lost", "CARD-LOST", "cardlost"])
def test_label_key_ignores_case_and_spacing(label: str) -> None:
    assert label_key(label) == "cardlost"


@pytest.mark.parametrize(
    ("mapping", "columns", "unlabelled"),
    [
        (ColumnMapping("t", None), ("t",), True),
        (ColumnMapping("t", "l", "s"), ("t", "l", "s"), False),
        (ColumnMapping("t", "l", second_label="m", keep_unlabelled=True), ("t", "l", "m"), True),
    ],
)
def test_column_mapping(mapping: ColumnMapping, columns: tuple[str, ...], unlabelled: bool) -> None:
    assert mapping.columns == columns
    assert mapping.accepts_unlabelled is unlabelled
