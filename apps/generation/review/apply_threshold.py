"""Judging the stored rows of a job again by another threshold for near duplicates.

What a person has looked at stays as it was left. Nothing is lost: a row that goes is rejected like
any other, and comes back with a higher threshold or by hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
from django.db import transaction

from apps.batch import services as batches
from apps.core.schemas.json_types import JsonObject
from apps.generation.models import Job
from apps.generation.recipe.spec import Filters, change_filters
from apps.generation.review.near_duplicates import compare_rows
from apps.generation.review.row_comparison import CHUNK, CODES, By, ComparisonPending, RowComparison
from apps.generation.rows import answer_check
from apps.runtime.async_db import in_db

T = TypeVar("T")

ALIKE = {By.TEXT: "similar to", By.MEANING: "similar in meaning to"}


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    rejected: int
    restored: int
    goes_on: bool
    """The job was done and makes new rows for those that went."""


async def apply_threshold(
    job: Job, by: By, step: int | None
) -> ThresholdResult | ComparisonPending:
    """Rejects and brings back what a threshold (in percent; None: none) says. If it is broken off
    some rows are judged and the threshold is as it was; to be asked again.

    Raises:
        as `compare_rows`
    """
    measured = await compare_rows(job, by)
    return (
        measured
        if isinstance(measured, ComparisonPending)
        else await in_db(_apply, job, by, step, measured)
    )


def _apply(job: Job, by: By, step: int | None, measured: RowComparison) -> ThresholdResult:
    goes, comes = measured.changes(step)
    cause = {} if step is None else measured.outcomes.duplicates_at(step)
    out = [
        (*_reason(measured, by, *cause[place]), measured.keys[place])
        for place in np.flatnonzero(goes).tolist()
    ]
    # In chunks: other writers do not wait for 100,000 rows.
    rejected = sum(map(batches.reject_near_duplicates, _chunks(out)))
    restored = _restore(job, [measured.keys[at] for at in np.flatnonzero(comes).tolist()])
    with transaction.atomic():
        batches.update_spec(job.batch, partial(_with_threshold, by=by, step=step))
        goes_on = batches.continue_refill(job.batch) if rejected else False
    return ThresholdResult(rejected, restored, goes_on)


def _with_threshold(spec: JsonObject, *, by: By, step: int | None) -> JsonObject:
    threshold = None if step is None else step / 100

    def change(filters: Filters) -> Filters:
        # The number tells a running pump that what it keeps in memory is out of date.
        filters = replace(filters, judged=filters.judged + 1)
        if by is By.TEXT:
            return replace(filters, near=threshold)
        return replace(filters, meaning=threshold)

    return change_filters(spec, change)


def _reason(measured: RowComparison, by: By, place: int, share: float) -> tuple[str, str]:
    seed = place < measured.seeds
    code = CODES[by][1 if seed else 0]
    what = "seed row" if seed else "row"
    percent = round(100 * share)
    return code, f"About {percent}% {ALIKE[by]} {what} {measured.indices[place] + 1}."


def _restore(job: Job, keys: list[int]) -> int:
    """Accept rejected rows again, except those with the same text as an accepted one."""
    recipe = job.spec.recipe
    restored = 0
    for part in _chunks(keys):
        items = batches.rows_of(job.batch_id).filter(pk__in=part).only("pk", "output")
        prints = {
            item.pk: answer_check.fingerprint(answer_check.free_texts_of(recipe, item.output))
            for item in items
        }
        known = {key: found for key, found in prints.items() if found is not None}
        restored += batches.restore_near_duplicates(job.batch_id, part, known)
    return restored


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]
