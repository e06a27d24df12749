"""Judging the stored rows of a job again by another threshold for near duplicates.

What a person has looked at stays as it was left. Nothing is lost: a row that goes is rejected like
any other, and comes back with a higher threshold or by hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from django.db import transaction

from apps.batch import services as batches
from apps.batch.models import Batch, Item, ItemStatus
from apps.generation.models import Job
from apps.generation.recipe.spec import Spec
from apps.generation.review.measure import CHUNK, CODES, By, Measured, Preparing, for_each, measure
from apps.generation.rows import validation
from apps.runtime.async_db import in_db

T = TypeVar("T")

ALIKE = {By.TEXT: "similar to", By.MEANING: "similar in meaning to"}


@dataclass(frozen=True, slots=True)
class Applied:
    rejected: int
    restored: int
    goes_on: bool
    """The job was done and makes new rows for those that went."""


async def apply(job: Job, by: By, step: int | None) -> Applied | Preparing:
    """Rejects and brings back what a threshold (in percent; None: none) says. If it is broken off
    some rows are judged and the threshold is as it was; to be asked again.

    Raises:
        as `measure`
    """
    measured = await measure(job, by)
    return (
        measured
        if isinstance(measured, Preparing)
        else await in_db(_apply, job, by, step, measured)
    )


def _apply(job: Job, by: By, step: int | None, measured: Measured) -> Applied:
    goes, comes = measured.changes(step)
    cause = {} if step is None else measured.verdicts.duplicates_at(step)
    out = [
        (*_reason(measured, by, *cause[place]), measured.keys[place])
        for place in np.flatnonzero(goes).tolist()
    ]
    # In pieces: nobody else who writes waits for 100,000 rows.
    rejected = sum(map(_reject_some, _parts(out)))
    restored = _bring_back(job, [measured.keys[at] for at in np.flatnonzero(comes).tolist()])
    with transaction.atomic():
        batch = Batch.objects.select_for_update().get(pk=job.batch_id)
        filters = {**batch.spec.get("filters", {})}
        filters["near" if by is By.TEXT else "meaning"] = None if step is None else step / 100
        # A pump that is at work sees by this that what it keeps in memory is out of date.
        filters["judged"] = filters.get("judged", 0) + 1
        batch.spec = {**batch.spec, "filters": filters}
        batch.save(update_fields=["spec"])
        goes_on = batches.make_up(batch) if rejected else False
    return Applied(rejected, restored, goes_on)


def _reason(measured: Measured, by: By, place: int, share: float) -> tuple[str, str]:
    seed = place < measured.seeds
    code = CODES[by][1 if seed else 0]
    what = "seed row" if seed else "row"
    percent = round(100 * share)
    return code, f"About {percent}% {ALIKE[by]} {what} {measured.indices[place] + 1}."


@transaction.atomic
def _reject_some(rows: Sequence[tuple[str, str, int]]) -> int:
    return for_each(
        "UPDATE {} SET status = 'rejected', code = %s, reason = %s "
        "WHERE id = %s AND status = 'accepted' AND NOT reviewed",
        rows,
    )


def _bring_back(job: Job, keys: list[int]) -> int:
    """Accepts rejected rows, but none that says what an accepted one says to the letter."""
    spec = job.spec
    mine: dict[str, int] = {}
    return sum(_bring_back_some(job, spec, part, mine) for part in _parts(keys))


@transaction.atomic
def _bring_back_some(job: Job, spec: Spec, keys: Sequence[int], mine: dict[str, int]) -> int:
    """As `_bring_back`; `mine` has the fingerprints of rows that came back before."""
    restored: list[tuple[str | None, int]] = []
    twins: list[tuple[str, int]] = []
    replaced: list[Item] = []
    items = list(Item.objects.filter(pk__in=keys, status=ItemStatus.REJECTED).order_by("index"))
    prints = {
        item.pk: validation.fingerprint(validation.texts_of(spec.recipe, item.output))
        for item in items
    }
    known = mine | dict(
        Item.objects.filter(
            batch_id=job.batch_id,
            status=ItemStatus.ACCEPTED,
            fingerprint__in=[one for one in prints.values() if one],
        ).values_list("fingerprint", "index")
    )
    for item in items:
        one = prints[item.pk]
        if one is not None and one in known:
            twins.append((f"Duplicate of row {known[one] + 1}.", item.pk))
            continue
        if one is not None:
            known[one] = mine[one] = item.index
        restored.append((one, item.pk))
        if item.replaced:
            replaced.append(item)
    for_each(
        "UPDATE {} SET status = 'accepted', code = '', reason = '', fingerprint = %s "
        "WHERE id = %s AND status = 'rejected'",
        restored,
    )
    for_each("UPDATE {} SET code = 'duplicate', reason = %s WHERE id = %s", twins)
    batches.take_back_spares(job.batch_id, replaced)
    return len(restored)


def _parts(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
