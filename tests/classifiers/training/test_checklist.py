"""What stands between a dataset and a good classifier."""

from typing import Any

import pytest

from apps.classifiers.training import checklist
from apps.classifiers.training.checklist import Checklist, Fix
from apps.datasets.services import Report

COUNTS = {"card": 20, "rate": 20}


def report(**found: Any) -> Report:
    clean: dict[str, Any] = dict.fromkeys(
        ("repeated", "duplicate_rows", "conflict_texts", "conflict_rows", "leak_rows"), 0
    )
    clean |= {"version": 0, "limit": None, "long_rows": 0, "few": [], "variants": []}
    return Report(**clean | {"one_label": False, "numbers": False} | found)  # type: ignore[typeddict-item]


def check(counts: dict[str, int] | None = None, unlabelled: int = 0, **found: Any) -> Checklist:
    counts = COUNTS if counts is None else counts
    return checklist.check(counts, sum(counts.values()) + unlabelled, report(**found))


def test_a_clean_dataset_passes_everything() -> None:
    found = check()
    assert (found.blocks, found.inflates, found.lowers) == ([], [], [])
    assert "2 labels to choose between" in found.passed
    assert len(found.passed) == 7


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({}, "No row has a label"),
        ({"oos": 9}, "No row has a label"),
        ({"card": 9, "oos": 9}, "There is only one label, “card”"),
        ({"card": 9, "rate": 1}, "Fewer than 2 labels have 2 rows"),
        ({str(n): 3 for n in range(1001)}, "There are 1,001 labels"),
    ],
)
def test_labels_that_cannot_be_trained_block_training(counts: dict[str, int], says: str) -> None:
    (finding,) = check(counts).blocks
    assert finding.title == says


@pytest.mark.parametrize(
    ("found", "title", "fix"),
    [
        ({"conflict_texts": 3, "conflict_rows": 7}, "3 texts with different labels", "conflict"),
        ({"repeated": 1}, "1 duplicate row (ignoring case and extra spaces)", "duplicates"),
        ({"numbers": True}, "All labels are numbers", "rows"),
        (
            {"few": [{"label": "a", "count": 2}]},
            "1 label with fewer than 10 rows",
            "generate",
        ),
        (
            {"variants": [[{"label": "A", "count": 2}, {"label": "a", "count": 1}]] * 5},
            "5 groups of labels differ only in case or spacing",
            "merge",
        ),
        (
            {"long_rows": 2, "limit": {"model": "mini", "tokens": 512, "characters": 2048}},
            "2 texts probably too long for mini",
            "long",
        ),
    ],
)
def test_what_lowers_accuracy_has_one_fix(found: dict[str, Any], title: str, fix: str) -> None:
    (finding,) = check(**found).lowers
    assert (finding.title, finding.fix) == (title, Fix(fix))


def test_leaks_inflate_the_score_and_names_are_cut() -> None:
    (leak,) = check(leak_rows=212).inflates
    assert (leak.title, leak.fix) == ("212 test rows also in the training data", Fix.MOVE_LEAKS)
    few = [{"label": str(n), "count": n} for n in range(1, 8)]
    (finding,) = check(few=few).lowers
    assert finding.detail.startswith("1 (1), 2 (2), 3 (3), and 4 more.")


def test_unlabelled_rows_are_not_trained() -> None:
    (finding,) = check(unlabelled=4120).lowers
    assert (finding.title, finding.fix) == ("4,120 rows without a label", Fix.LABEL)
