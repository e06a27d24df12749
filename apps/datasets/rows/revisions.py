"""Revisions: one change of a dataset, recorded step by step so that it can be undone."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from apps.datasets.models import Dataset, Revision
from apps.datasets.rows.steps import (
    CountChanges,
    Step,
    count_duplicates,
    finish_revision,
    record_steps,
)


def last_undoable(dataset: Dataset) -> Revision | None:
    """Return the revision that Undo would take back."""
    return dataset.revisions.filter(undone=False, undoes=None, complete=True).first()


def revise(
    dataset: Dataset,
    now: Dataset,
    description: str,
    steps: Sequence[Step],
    *,
    by: User | None,
    undoes: Revision | None = None,
) -> Revision | None:
    """Make a few steps in one transaction. None, and nothing changed, if there are no steps.

    Args:
        now: the locked dataset.
    """
    if not steps:
        return None
    revision = Revision.objects.create(
        dataset=now,
        number=now.version + 1,
        what=description[:300],
        by=by,
        rows=len(steps),
        undoes=undoes,
    )
    record_steps(now, revision, steps)
    counts = CountChanges()
    counts.add(steps)
    duplicates = count_duplicates(now) if counts.changes_row_count else None
    finish_revision(now, revision, counts, duplicates)
    dataset.refresh_from_db()
    return revision
