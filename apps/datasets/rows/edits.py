"""Edits of single rows. Each is a revision: it can be undone, and earlier versions read again."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps import files
from apps.datasets.models import Dataset, Example, Revision
from apps.datasets.rows.bulk_changes import ChangePlan
from apps.datasets.rows.bulk_edits import make_now
from apps.datasets.rows.edit_steps import (
    check_label_count,
    check_split,
    clean_label,
    delete_steps,
    label_steps,
    quoted,
    row_count,
    split_phrase,
    split_steps,
)
from apps.datasets.rows.revisions import revise
from apps.datasets.rows.steps import CHUNK_ROWS, ROW_FIELDS, Step, chunks, lock_dataset
from apps.files import ExampleRow, RejectedRow


def relabel(example: Example, label: str, *, by: User | None = None) -> Example:
    """Change the label of an example; an empty one removes it.

    Raises:
        ValueError: the label is too long, or one too many; the message says so.
    """
    dataset = example.dataset
    relabel_rows(dataset, [example.index], label, by=by)
    example.refresh_from_db()
    dataset.refresh_from_db()
    return example


@transaction.atomic
def relabel_rows(
    dataset: Dataset, indices: Sequence[int], label: str, *, by: User | None = None
) -> Revision | None:
    """Give some rows one label. None if all of them have it already.

    Raises:
        ValueError: the label is too long, or one too many; the message says so.
    """
    now = lock_dataset(dataset)
    label = clean_label(now, label)
    steps = label_steps(now, indices, label)
    if len(steps) == 1:
        assert steps[0].before is not None
        old = steps[0].before["label"]
        description = (
            f"Row {steps[0].index + 1}: label changed from {quoted(old)} to {quoted(label)}"
        )
    else:
        description = f"{row_count(len(steps))} labelled {quoted(label)}"
    return revise(dataset, now, description, steps, by=by)


@transaction.atomic
def delete_rows(
    dataset: Dataset, indices: Sequence[int], *, by: User | None = None
) -> Revision | None:
    now = lock_dataset(dataset)
    steps = delete_steps(now, indices)
    if len(steps) == 1:
        description = f"Row {steps[0].index + 1} deleted"
    else:
        description = f"{row_count(len(steps))} deleted"
    return revise(dataset, now, description, steps, by=by)


@transaction.atomic
def set_split(
    dataset: Dataset, indices: Sequence[int], split: str, *, by: User | None = None
) -> Revision | None:
    """Raises:
    ValueError: there is no such split.
    """
    check_split(split)
    now = lock_dataset(dataset)
    steps = split_steps(now, indices, split)
    return revise(dataset, now, f"{row_count(len(steps))} {split_phrase(split)}", steps, by=by)


def add_rows(
    dataset: Dataset, rows: Sequence[ExampleRow], *, by: User | None = None, description: str = ""
) -> tuple[Revision | None, list[RejectedRow]]:
    """Add rows at the end, and return those that cannot be used with number and reason.

    Args:
        description: of the revision in the history; empty for the number of rows.

    Raises:
        ValueError: there would be too many labels.
    """
    good, rejected = _check_rows(rows)
    labels = {row["label"] for row in good} - {""}
    description = description or f"{row_count(len(good))} added"
    if len(good) <= CHUNK_ROWS:
        with transaction.atomic():
            now = lock_dataset(dataset)
            check_label_count(now, labels)
            return revise(dataset, now, description, _added(now, good), by=by), rejected

    def plan(now: Dataset, _: dict[str, Any]) -> ChangePlan:
        check_label_count(now, labels)
        return ChangePlan(
            description,
            len(good),
            lambda: (
                _added(now, part, place * CHUNK_ROWS) for place, part in enumerate(chunks(good))
            ),
        )

    return make_now(dataset, "add", {}, plan, by=by), rejected


def _check_rows(rows: Sequence[ExampleRow]) -> tuple[list[dict[str, Any]], list[RejectedRow]]:
    """Return the good rows as they are stored, and the others."""
    good: list[dict[str, Any]] = []
    rejected: list[RejectedRow] = []
    for number, row in enumerate(rows, start=1):
        found = files.check_row(row, number, unlabelled=True)
        if isinstance(found, RejectedRow):
            rejected.append(found)
            continue
        origin = found.origin or "added here"
        given = (found.text, found.label, found.split or "", origin, found.meta)
        good.append(dict(zip(ROW_FIELDS, given, strict=True)))
    return good, rejected


def _added(now: Dataset, rows: Sequence[dict[str, Any]], skipped: int = 0) -> list[Step]:
    """Return the steps that add rows at the end, `skipped` rows after it."""
    first = now.next_index + skipped
    return [Step(first + place, None, row) for place, row in enumerate(rows)]
