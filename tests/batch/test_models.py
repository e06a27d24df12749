"""Figures that a job and a row compute from their own columns."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.batch.models import Batch, Item


def test_spent_tokens_are_uncached_and_include_estimates() -> None:
    batch = Batch(prompt_tokens=100, cached_tokens=60, completion_tokens=30, estimated_tokens=5)
    assert batch.spent_tokens == 75


def test_spent_today_counts_from_the_start_of_the_day() -> None:
    today = timezone.localdate()
    batch = Batch(completion_tokens=500, tokens_before_day=420, day=today)
    assert batch.spent_today == 80
    batch.day = today - timedelta(days=1)
    assert batch.spent_today == 0
    batch.day = None
    assert batch.spent_today == 0


@pytest.mark.parametrize(("goal", "wanted"), [(None, 8), (3, 3), (0, 0)])
def test_wanted_is_the_goal_if_there_is_one(goal: int | None, wanted: int) -> None:
    assert Batch(total=8, goal=goal).wanted == wanted


def test_original_index_is_that_of_the_replaced_row() -> None:
    assert Item(index=9, input={"for": 2}).original_index == 2
    assert Item(index=9).original_index == 9


def test_current_output_prefers_the_edit() -> None:
    assert Item(output={"a": 1}).current_output == {"a": 1}
    assert Item(output={"a": 1}, edited={}).current_output == {}


def test_names_in_logs_show_what_they_are() -> None:
    batch = Batch(pk=3, handler="generation", status="queued")
    assert str(batch) == "Batch 3 (generation, queued)"
    assert str(Item(batch_id=3, index=4)) == "Row 4 of batch 3"
