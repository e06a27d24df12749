"""Edits of any number of rows: few at once, many by a worker."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.core.text.storable import is_storable
from apps.datasets.errors import BeingChanged
from apps.datasets.models import Dataset, Revision
from apps.datasets.rows.browsing import Filters
from apps.datasets.rows.bulk_changes import (
    PendingChange,
    Planner,
    abandon_change,
    create_change,
    fail_change,
    make_change,
    roll_back,
)
from apps.datasets.rows.change_plans import PLANNERS
from apps.datasets.rows.edit_steps import check_split, clean_label, label_rows
from apps.datasets.rows.revisions import last_undoable, revise
from apps.datasets.rows.steps import CHUNK_ROWS, Step, lock_dataset
from apps.work import services as work
from apps.work.errors import LeaseLost
from apps.work.services import INTERNAL_ERROR, MAX_ATTEMPTS, HeldTask

TEST_SHARE = 0.2
MAX_WAITED_ROWS = 20_000  # changed while a person waits, about two seconds; more by a worker

Changed = Revision | PendingChange | None
"""The change that was made; the one that a worker will make; None if nothing had to change."""


def merge_labels(
    dataset: Dataset, labels: Sequence[str], into: str, *, by: User | None = None
) -> Changed:
    """Merge labels into one, or rename one.

    Raises:
        ValueError: the label is empty or too long.
    """
    if not into.strip():
        raise ValueError("Choose the label to merge into.")
    clean_label(dataset, into, replaced=labels)
    rows = sum(label_rows(dataset, label) for label in set(labels))
    return start_change(dataset, "merge", {"labels": list(labels), "into": into}, rows, by=by)


def delete_duplicates(dataset: Dataset, *, by: User | None = None) -> Changed:
    """Delete every row with the text and label of an earlier row; a test row is kept in place of
    its duplicates in training."""
    return start_change(dataset, "deduplicate", {}, dataset.rows, by=by)


def make_split(
    dataset: Dataset,
    *,
    share: float = TEST_SHARE,
    seed: int = 0,
    by: User | None = None,
    wait: bool = False,
) -> Changed:
    """Mark about `share` of each label's texts as the test split, and all other rows as training.

    Rows with the same text stay on one side; a label with only one text stays in training;
    unlabelled rows are in neither. A row that has a split keeps it.

    Args:
        wait: make the split in this process, however many rows there are.

    Raises:
        ValueError: no label has two different texts without a split.
    """
    args = {"share": share, "seed": seed}
    return start_change(dataset, "split", args, 0 if wait else dataset.rows, by=by)


def change_matching(
    dataset: Dataset, filters: Filters, action: str, value: str = "", *, by: User | None = None
) -> Changed:
    """Change every row that a filter finds.

    Args:
        action: "label" and "split" give `value`, "delete" removes.

    Raises:
        ValueError: there is no such action, label or split; the message says so.
    """
    if action == "label":
        value = clean_label(dataset, value)
    elif action == "split":
        check_split(value)
    elif action != "delete":
        raise ValueError("Choose what to do with the rows.")
    args = {"filters": filters.as_json(), "action": action, "value": value}
    return start_change(dataset, "matching", args, dataset.rows, by=by)


def undo(dataset: Dataset, *, by: User | None = None) -> Changed:
    """Undo the last change that is not undone yet; None if there is none."""
    with transaction.atomic():
        now = lock_dataset(dataset)
        last = last_undoable(now)
        if last is None:
            return None
        if last.rows <= CHUNK_ROWS:
            changes = last.changes.order_by("index").values_list("index", "before", "after")
            steps = [Step(*change).inverse for change in changes]
            return revise(dataset, now, f"Undone: {last.what}", steps, by=by, undoes=last)
    return start_change(dataset, "undo", {"number": last.number}, last.rows, by=by)


def start_change(
    dataset: Dataset, kind: str, args: dict[str, Any], rows: int, *, by: User | None
) -> Changed:
    """Make a change in chunks: now if it concerns few rows, else by a worker.

    Args:
        rows: about how many rows it concerns.

    Raises:
        ValueError: a text in `args` has a character that no row has.
    """
    if not is_storable(args):
        raise ValueError("A NUL character or half of a surrogate pair is in no row.")
    if rows > MAX_WAITED_ROWS:
        return PendingChange.of_task(create_change(dataset, kind, args, by=by, send=True))
    return make_now(dataset, kind, args, PLANNERS[kind], by=by)


def make_now(
    dataset: Dataset, kind: str, args: dict[str, Any], planner: Planner, *, by: User | None
) -> Revision | None:
    """Make a change of many rows in this process."""
    held = work.claim(create_change(dataset, kind, args, by=by, send=False).pk)
    if held is None:  # its dataset was deleted at this moment
        raise BeingChanged
    now = Dataset.objects.get(pk=dataset.pk)
    with held:
        try:
            revision = make_change(held, now, planner(now, args))
        except BaseException:
            abandon_change(held, now)
            raise
    dataset.refresh_from_db()
    return revision


def run_change(held: HeldTask) -> None:
    """Make a change as a worker: the handler of `TaskKind.CHANGE`.

    A kind without a planner had its rows in a request that is gone: it is rolled back.
    """
    dataset = Dataset.objects.filter(pk=held.subject).first()
    if dataset is None:
        return
    options = held.task.options
    try:
        roll_back(held, dataset)
        if held.is_worn_out:
            raise ValueError(f"The worker ended {MAX_ATTEMPTS} times during this change.")
        if planner := PLANNERS.get(options["change"]):
            make_change(held, dataset, planner(dataset, options["args"]))
        else:
            held.task.delete()
    except LeaseLost:
        raise
    except ValueError as error:
        fail_change(held, dataset, str(error))
    except Exception:
        fail_change(held, dataset, INTERNAL_ERROR)
        raise
