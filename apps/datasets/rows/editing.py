"""Changing a dataset. Everything goes through a revision: it can be undone, and read again."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps import files
from apps.core.text.storable import is_storable
from apps.datasets.imports.writer import count_duplicates
from apps.datasets.models import BulkChange, Dataset, Example, Revision, Split
from apps.datasets.rows import browsing, bulk, splitting
from apps.datasets.rows.browsing import Filters
from apps.datasets.rows.bulk import Work
from apps.datasets.rows.changes import (
    FEW,
    FULL,
    Counts,
    Step,
    finish,
    locked,
    pieces,
    values,
    write,
)
from apps.files import MAX_LABELS, ExampleRow, RejectedRow

TEST_SHARE = 0.2
WAITED_ROWS = 20_000  # changed while a person waits, about two seconds; more by a worker

Changed = Revision | BulkChange | None
"""What was done; what a worker will do; or that there was nothing to do."""


def relabel(example: Example, label: str, *, by: User | None = None) -> Example:
    """Gives one example another label; an empty one takes it away.

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
    """Gives some rows one label. None where all of them have it already.

    Raises:
        ValueError: the label is too long, or one too many; the message says so.
    """
    now = locked(dataset)
    label = _good_label(now, label)
    steps = _relabelled(now, indices, label)
    if len(steps) == 1:
        assert steps[0].before is not None
        old = steps[0].before["label"]
        what = f"Row {steps[0].index + 1}: label changed from {_quoted(old)} to {_quoted(label)}"
    else:
        what = f"{_rows(len(steps))} labelled {_quoted(label)}"
    return _revise(dataset, now, what, steps, by=by)


@transaction.atomic
def delete_rows(
    dataset: Dataset, indices: Sequence[int], *, by: User | None = None
) -> Revision | None:
    now = locked(dataset)
    steps = _deleted(now, indices)
    if len(steps) == 1:
        what = f"Row {steps[0].index + 1} deleted"
    else:
        what = f"{_rows(len(steps))} deleted"
    return _revise(dataset, now, what, steps, by=by)


@transaction.atomic
def set_split(
    dataset: Dataset, indices: Sequence[int], split: str, *, by: User | None = None
) -> Revision | None:
    """Raises:
    ValueError: there is no such split.
    """
    _check_split(split)
    now = locked(dataset)
    steps = _moved(now, indices, split)
    return _revise(dataset, now, f"{_rows(len(steps))} {_where(split)}", steps, by=by)


def add_rows(
    dataset: Dataset, rows: Sequence[ExampleRow], *, by: User | None = None
) -> tuple[Revision | None, list[RejectedRow]]:
    """Adds rows at the end; those that cannot be used are given back with their number and reason.

    Raises:
        ValueError: there would be too many labels.
    """
    rejected: list[RejectedRow] = []
    good: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        found = files.check_row(row, number, unlabelled=True)
        if isinstance(found, RejectedRow):
            rejected.append(found)
            continue
        origin = found.origin or "added here"
        given = (found.text, found.label, found.split or "", origin, found.meta)
        good.append(dict(zip(FULL, given, strict=True)))
    labels = {row["label"] for row in good} - {""}
    added = "1 row added" if len(good) == 1 else f"{_rows(len(good))} were added"

    def steps(now: Dataset, some: Sequence[dict[str, Any]], skipped: int = 0) -> list[Step]:
        first = now.next_index + skipped
        return [Step(first + place, None, row) for place, row in enumerate(some)]

    if len(good) <= FEW:
        with transaction.atomic():
            now = locked(dataset)
            _check_label_count(now, labels)
            return _revise(dataset, now, added, steps(now, good), by=by), rejected

    def plan(now: Dataset, _: dict[str, Any]) -> Work:
        _check_label_count(now, labels)
        return Work(
            added,
            len(good),
            lambda: (steps(now, some, place * FEW) for place, some in enumerate(pieces(good))),
        )

    return _now(dataset, "add", {}, plan, by=by), rejected


# --- Changes of as many rows as there are -------------------------------------


def merge_labels(
    dataset: Dataset, labels: Sequence[str], into: str, *, by: User | None = None
) -> Changed:
    """Makes one label of several; of one, it gives it another name.

    Raises:
        ValueError: the label is empty or too long.
    """
    if not into.strip():
        raise ValueError("Choose the label to merge into.")
    _good_label(dataset, into, but=labels)
    rows = sum(_count(dataset, label) for label in set(labels))
    return _change(dataset, "merge", {"labels": list(labels), "into": into}, rows, by=by)


def delete_duplicates(dataset: Dataset, *, by: User | None = None) -> Changed:
    """Removes every row whose text and label were there before; where the split says so, a test row
    stays and its copies in training go."""
    return _change(dataset, "deduplicate", {}, dataset.rows, by=by)


def make_split(
    dataset: Dataset,
    *,
    share: float = TEST_SHARE,
    seed: int = 0,
    by: User | None = None,
    wait: bool = False,
) -> Changed:
    """Marks about `share` of each label's texts as the test split, and all other rows as training.

    Rows with the same text stay on one side; a label with one text only stays in training;
    unlabelled rows are in neither. A row that has a split keeps it.

    Args:
        wait: makes it in this process, however many rows there are.

    Raises:
        ValueError: no label has two different texts without a split.
    """
    args = {"share": share, "seed": seed}
    return _change(dataset, "split", args, 0 if wait else dataset.rows, by=by)


def change_matching(
    dataset: Dataset, filters: Filters, action: str, value: str = "", *, by: User | None = None
) -> Changed:
    """Does one thing to every row that a filter finds.

    Args:
        action: "label" and "split" give `value`, "delete" removes.

    Raises:
        ValueError: there is no such action, label or split; the message says so.
    """
    if action == "label":
        value = _good_label(dataset, value)
    elif action == "split":
        _check_split(value)
    elif action != "delete":
        raise ValueError("Choose what to do with the rows.")
    args = {"filters": filters.as_json(), "action": action, "value": value}
    return _change(dataset, "matching", args, dataset.rows, by=by)


def undo(dataset: Dataset, *, by: User | None = None) -> Changed:
    """Takes the last thing back that was not taken back before; None where nothing is left."""
    with transaction.atomic():
        now = locked(dataset)
        last = can_undo(now)
        if last is None:
            return None
        if last.rows <= FEW:
            changes = last.changes.order_by("index").values_list("index", "before", "after")
            steps = [Step(*change).back for change in changes]
            return _revise(dataset, now, f"Undone: {last.what}", steps, by=by, undoes=last)
    return _change(dataset, "undo", {"number": last.number}, last.rows, by=by)


def can_undo(dataset: Dataset) -> Revision | None:
    """What Undo would take back."""
    return dataset.revisions.filter(undone=False, undoes=None, complete=True).first()


# --- What each of them does ---------------------------------------------------


def _plan_merge(dataset: Dataset, args: dict[str, Any]) -> Work:
    into = _good_label(dataset, args["into"], but=args["labels"])
    old = [label for label in dict.fromkeys(args["labels"]) if label != into]
    rows = sum(_count(dataset, label) for label in old)
    names = ", ".join(map(_quoted, old[:3])) + (f" and {len(old) - 3} more" if len(old) > 3 else "")
    found = dataset.examples.filter(label__in=old).order_by("index").values_list("index", "label")

    def steps() -> Iterator[list[Step]]:
        while some := list(found[:FEW]):  # those that were changed are found no more
            yield [Step(index, {"label": was}, {"label": into}) for index, was in some]

    return Work(f"{names} became {_quoted(into)} ({_rows(rows)})", rows, steps)


def _plan_deduplicate(dataset: Dataset, args: dict[str, Any]) -> Work:
    seen: set[tuple[int, str]] = set()
    gone = []
    order = dataset.examples.order_by("index").values_list("index", "text_key", "label", "split")
    for wanted in (True, False):  # test rows first: they must not lose to a training row
        for index, key, label, split in order.iterator():
            if (split == Split.TEST) == wanted:
                if (key, label) in seen:
                    gone.append(index)
                seen.add((key, label))
    gone.sort()
    what = f"{_rows(len(gone))} with a repeated text were deleted"
    return Work(what, len(gone), lambda: (_deleted(dataset, some) for some in pieces(gone)))


def _plan_split(dataset: Dataset, args: dict[str, Any]) -> Work:
    rows = list(
        dataset.examples.exclude(label="")
        .order_by("index")
        .values_list("index", "label", "text_key", "split")
    )
    # A text that has a side in one row has it in all.
    sides = {key: split for _, _, key, split in rows if split}
    free = [(index, label, key) for index, label, key, split in rows if not split]
    open_rows = [row for row in free if row[2] not in sides]
    test = splitting.hold_out(
        [label for _, label, _ in open_rows],
        [key for *_, key in open_rows],
        share=args["share"],
        seed=args["seed"],
    )
    held = {index for (index, *_), is_test in zip(open_rows, test, strict=True) if is_test}
    if not held and (free or Split.TEST not in sides.values()):
        raise ValueError(
            "All rows have a split already, and none is test. Mark some rows as test."
            if rows and not free
            else "Each label has only one text, so no test rows can be held out."
        )
    new = {
        index: Split.TEST.value if index in held else sides.get(key, Split.TRAIN.value)
        for index, _, key in free
    }
    steps = [Step(index, {"split": ""}, {"split": split}) for index, split in new.items()]
    what = f"{len(held):,} rows were set aside as test"
    return Work(what, len(steps), lambda: map(list, pieces(steps)))


def _plan_matching(dataset: Dataset, args: dict[str, Any]) -> Work:
    action, value = args["action"], args["value"]
    filters = Filters.from_json(args["filters"])
    if action == "label":
        _check_label_count(dataset, {value} - {""})
    found = browsing.rows(dataset, filters).order_by("index").values_list("index", flat=True)
    indices = list(found.iterator())
    doing: dict[str, tuple[str, Callable[[Sequence[int]], list[Step]]]] = {
        "label": (f"became {_quoted(value)}", lambda some: _relabelled(dataset, some, value)),
        "split": (_where(value), lambda some: _moved(dataset, some, value)),
        "delete": ("were deleted", lambda some: _deleted(dataset, some)),
    }
    words, steps_of = doing[action]

    def steps() -> Iterator[list[Step]]:
        return filter(None, map(steps_of, pieces(indices)))

    return Work(f"{_rows(len(indices))} that match a filter {words}", len(indices), steps)


def _plan_undo(dataset: Dataset, args: dict[str, Any]) -> Work:
    last = dataset.revisions.get(number=args["number"])
    if last != can_undo(dataset):
        raise ValueError("The dataset was changed meanwhile.")

    def steps() -> Iterator[list[Step]]:
        after = -1
        while some := list(
            last.changes.filter(index__gt=after)
            .order_by("index")
            .values_list("index", "before", "after")[:FEW]
        ):
            after = some[-1][0]
            yield [Step(*change).back for change in some]

    return Work(f"Undone: {last.what}", last.rows, steps, undoes=last)


PLANS: dict[str, bulk.Planner] = {
    "merge": _plan_merge,
    "deduplicate": _plan_deduplicate,
    "split": _plan_split,
    "matching": _plan_matching,
    "undo": _plan_undo,
}


# --- How it is done -----------------------------------------------------------


def _change(
    dataset: Dataset, kind: str, args: dict[str, Any], rows: int, *, by: User | None
) -> Changed:
    """Makes a change in pieces: now, where about so few rows are concerned, else by a worker.

    Raises:
        ValueError: a text in `args` is one that no row has and no database takes.
    """
    if not is_storable(args):
        raise ValueError("A NUL character or half of a surrogate pair is in no row.")
    if rows > WAITED_ROWS:
        return bulk.begin(dataset, kind, args, by=by, held=False)
    return _now(dataset, kind, args, PLANS[kind], by=by)


def _now(
    dataset: Dataset, kind: str, args: dict[str, Any], plan: bulk.Planner, *, by: User | None
) -> Revision | None:
    change = bulk.begin(dataset, kind, args, by=by, held=True)
    now = Dataset.objects.get(pk=dataset.pk)
    change.dataset = now
    try:
        revision = bulk.make(change, plan(now, args))
    except BaseException:
        bulk.give_up(change)
        raise
    dataset.refresh_from_db()
    return revision


def _revise(
    dataset: Dataset,
    now: Dataset,
    what: str,
    steps: Sequence[Step],
    *,
    by: User | None,
    undoes: Revision | None = None,
) -> Revision | None:
    """Does a few steps in one transaction. None, and nothing done, where there are none."""
    if not steps:
        return None
    revision = Revision.objects.create(
        dataset=now,
        number=now.version + 1,
        what=what[:300],
        by=by,
        rows=len(steps),
        undoes=undoes,
    )
    write(now, revision, steps)
    counts = Counts()
    counts.add(steps)
    finish(now, revision, counts, count_duplicates(now) if counts.moved else None)
    dataset.refresh_from_db()
    return revision


def _relabelled(dataset: Dataset, indices: Sequence[int], label: str) -> list[Step]:
    return [
        Step(index, {"label": old}, {"label": label})
        for index, old in values(dataset, indices, "label")
        if old != label
    ]


def _moved(dataset: Dataset, indices: Sequence[int], split: str) -> list[Step]:
    return [
        Step(index, {"split": old}, {"split": split})
        for index, old in values(dataset, indices, "split")
        if old != split
    ]


def _deleted(dataset: Dataset, indices: Sequence[int]) -> list[Step]:
    return [
        Step(index, dict(zip(FULL, row, strict=True)), None)
        for index, *row in values(dataset, indices, *FULL)
    ]


def _check_split(split: str) -> None:
    if split not in Split.values:
        raise ValueError(f"“{split[:40]}” is not a valid split. Use train, validation or test.")


def _where(split: str) -> str:
    return f"moved to {split}" if split else "removed from their split"


def _good_label(dataset: Dataset, label: str, *, but: Sequence[str] = ()) -> str:
    """The label, cleaned. `but` are labels that go.

    Raises:
        ValueError: it is too long, or one too many.
    """
    row = files.check_row(ExampleRow("a text", label), 1, unlabelled=True)
    if isinstance(row, RejectedRow):
        raise ValueError(row.reason)
    _check_label_count(dataset, {row.label} - {""}, but=but)
    return row.label


def _check_label_count(dataset: Dataset, labels: set[str], *, but: Sequence[str] = ()) -> None:
    if len(labels | set(dataset.label_counts).difference(but)) > MAX_LABELS:
        raise ValueError(f"Too many labels. The limit is {MAX_LABELS:,} per dataset.")


def _count(dataset: Dataset, label: str) -> int:
    return int(dataset.label_counts.get(label, 0)) if label else dataset.unlabelled


def _quoted(label: str) -> str:
    return f"“{label}”" if label else "unlabelled"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
