"""Column names: found in the first row, made unique."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.files.columns import KNOWN_COLUMN_NAMES
from apps.files.header import column_names, looks_like_header


@given(st.lists(st.text(" ab", max_size=4), max_size=12), st.booleans())
def test_column_names_are_different_and_not_empty(first: list[str], header: bool) -> None:
    names, cleaned = column_names(first, header)
    assert len(names) == len(set(names)) == len(first)
    assert all(name.strip() == name != "" for name in names)
    assert 0 <= cleaned <= len(first)


def test_column_names_number_empty_and_repeated_cells() -> None:
    assert column_names(["a", " a ", "", "a"], True) == (("a", "a (2)", "column 3", "a (3)"), 1)
    assert column_names(["a", "b"], False) == (("column 1", "column 2"), 0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["Text", "x"], ["a", "b"]], True),
        ([["frage", "art"], ["wo ist sie", "karte"]], True),
        ([["wo ist sie", "karte"], ["und hier", "karte"]], False),  # a label repeats
        ([["frage", ""], ["a", "b"]], False),
        ([["f" * 61, "art"], ["a", "b"]], False),
        ([["Label Text", "x" * 99], ["a", "b"]], True),
    ],
)
def test_looks_like_header(rows: list[list[str]], expected: bool) -> None:
    assert looks_like_header(rows, KNOWN_COLUMN_NAMES) is expected
