"""What a job's page says of its state, its time and its losses."""

from dataclasses import replace

import pytest

from apps.batch.models import ItemStatus
from apps.batch.services import Progress
from apps.generation.figures.hint import hint_of
from apps.generation.figures.job_state import job_state
from apps.generation.figures.time_left import time_left

NONE = dict.fromkeys(ItemStatus.values, 0)
PROGRESS = Progress(
    counts=NONE | {"accepted": 100},
    total=200,
    goal=None,
    reasons=[],
    rows_per_s=2.0,
    tokens_per_s=None,
    eta_s=50.0,
    cached_share=None,
    width=4,
)


@pytest.mark.parametrize(
    ("status", "accepted", "word", "tone"),
    [
        ("running", 0, "Running", "accent"),
        ("queued", 0, "Queued", ""),
        ("done", 10, "Done", "good"),
        ("done", 9, "Done", "warn"),
        ("done", 0, "Failed", "bad"),
        ("failed", 9, "Failed", "bad"),
        ("cancelled", 0, "Cancelled", "warn"),
    ],
)
def test_done_without_a_row_is_failed(status: str, accepted: int, word: str, tone: str) -> None:
    found = job_state(status, NONE | {"accepted": accepted}, wanted=10)
    assert (found.word, found.tone) == (word, tone)


def test_the_range_of_the_time_narrows_with_the_rows() -> None:
    few = time_left(replace(PROGRESS, counts=NONE | {"accepted": 25}), 12.5)
    many = time_left(PROGRESS, 50.0)
    assert few is not None
    assert many is not None
    assert (few.likely, many.likely) == (50.0, 50.0)
    assert (few.least, few.most) == (pytest.approx(30), pytest.approx(70))
    assert (many.least, many.most) == (pytest.approx(40), pytest.approx(60))


def test_a_job_that_became_slower_has_a_wider_range() -> None:
    found = time_left(PROGRESS, 25.0)  # twice as fast over the whole time
    assert found is not None
    assert (found.least, found.most) == (pytest.approx(20), pytest.approx(60))


@pytest.mark.parametrize(
    "progress",
    [
        replace(PROGRESS, counts=NONE | {"accepted": 19}),
        replace(PROGRESS, eta_s=None),
        replace(PROGRESS, rows_per_s=None),
    ],
)
def test_nothing_is_estimated_from_too_little(progress: Progress) -> None:
    assert time_left(progress, 50.0) is None


@pytest.mark.parametrize(
    ("reasons", "sentence", "fix"),
    [
        (
            [("rejected", "check_length", 41), ("rejected", "judged", 21)],
            "41 of 62 rejected rows are too short or too long.",
            "recipe",
        ),
        (
            [("rejected", "near_duplicate", 5)],
            "All 5 rejected rows are near-duplicates of another row.",
            "threshold",
        ),
        (
            [("rejected", "by_hand", 50), ("failed", "stalled", 4)],
            "All 4 failed rows: Server stopped responding.",
            "retry",
        ),
    ],
)
def test_the_most_frequent_reason_and_a_fix(
    reasons: list[tuple[str, str, int]], sentence: str, fix: str
) -> None:
    found = hint_of(reasons, can_retry=True)
    assert found is not None
    assert (found.sentence, found.fix) == (sentence, fix)
    assert f"{found.rows} " in sentence  # "Show 4" opens as many


@pytest.mark.parametrize("reasons", [[], [("rejected", "judged", 2)], [("rejected", "by_hand", 9)]])
def test_few_lost_rows_need_no_hint(reasons: list[tuple[str, str, int]]) -> None:
    assert hint_of(reasons, can_retry=False) is None
