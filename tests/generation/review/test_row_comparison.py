"""A job's rows compared with each other, and what thresholds do to them (without a database)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.review.row_comparison import By, RowComparison, build_comparison

# Angles in degrees of unit vectors: 10 apart is a cosine of 98 %, 40 of 77 %.
Rows = list[tuple[float, bool, bool]]
"""Angle, accepted, reviewed."""


def compare(rows: Rows, seeds: tuple[float, ...] = ()) -> RowComparison:
    angles = np.radians([*seeds, *(angle for angle, _, _ in rows)])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    known: list[tuple[Any, ...]] = [
        (100 + at, at, "accepted" if accepted else "rejected", reviewed)
        for at, (_, accepted, reviewed) in enumerate(rows)
    ]
    return build_comparison(list(range(len(seeds))), known, vectors, By.MEANING)


def keys(found: RowComparison, mask: Any) -> list[int]:
    return sorted(found.keys[at] - 100 for at in np.flatnonzero(mask))


def changes(found: RowComparison, step: int | None) -> tuple[list[int], list[int]]:
    goes, comes = found.changes(step)
    return keys(found, goes), keys(found, comes)


def test_the_first_of_similar_rows_stays() -> None:
    found = compare([(0, True, False), (10, True, False), (40, True, False)])
    assert changes(found, 95) == ([1], [])
    assert changes(found, 70) == ([1, 2], [])
    assert changes(found, 100) == changes(found, None) == ([], [])


def test_a_row_similar_to_a_removed_one_alone_stays() -> None:
    found = compare([(0, True, False), (30, True, False), (60, True, False)])
    assert changes(found, 80) == ([1], [])


def test_a_rejected_row_is_restored_by_a_higher_threshold() -> None:
    found = compare([(0, True, False), (10, False, False)])
    assert changes(found, 90) == ([], [])
    assert changes(found, 99) == changes(found, None) == ([], [1])


def test_a_reviewed_row_stays_and_removes_earlier_ones() -> None:
    found = compare([(0, True, False), (10, True, True)])
    assert changes(found, 90) == ([0], [])


def test_seed_rows_remove_rows_and_are_none_themselves() -> None:
    found = compare([(1, True, False), (80, True, False)], seeds=(0, 1))
    assert changes(found, 90) == ([0], [])
    assert int(found.rows.sum()) == 2
    assert found.as_dict()["rows"] == 2


def test_no_rows() -> None:
    found = compare([])
    assert changes(found, 50) == ([], [])
    counts = found.as_dict()
    assert (counts["rows"], counts["below"], sum(counts["out"])) == (0, 0, 0)


@pytest.mark.parametrize("seeds", [(), (45.0,)])
@given(
    rows=st.lists(st.tuples(st.floats(0, 90), st.booleans(), st.booleans()), min_size=1, max_size=8)
)
def test_the_counts_of_a_page_are_those_of_its_thresholds(
    seeds: tuple[float, ...], rows: Rows
) -> None:
    found = compare(rows, seeds)
    page = found.as_dict()
    assert page["rows"] == len(rows) == sum(page["histogram"]) + page["below"]
    assert page["accepted"] == sum(accepted for _, accepted, _ in rows)
    assert page["seen"] == sum(accepted and reviewed for _, accepted, reviewed in rows)
    for at, step in enumerate(page["steps"]):
        goes, comes = changes(found, step)
        assert (len(goes), len(comes)) == (page["out"][at], page["back"][at])
        assert all(rows[key][1] and not rows[key][2] for key in goes)
        assert not any(rows[key][1] for key in comes)
    assert page["all_back"] == len(changes(found, None)[1])
