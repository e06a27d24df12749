"""Plans of changes of many rows: what each kind reads first, and its steps."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from apps.datasets.models import Dataset, Split
from apps.datasets.rows import browsing, splitting
from apps.datasets.rows.browsing import Filters
from apps.datasets.rows.bulk_changes import ChangePlan, Planner
from apps.datasets.rows.edit_steps import (
    check_label_count,
    clean_label,
    delete_steps,
    label_rows,
    label_steps,
    quoted,
    row_count,
    split_phrase,
    split_steps,
)
from apps.datasets.rows.revisions import last_undoable
from apps.datasets.rows.steps import CHUNK_ROWS, Step, chunks


def _plan_merge(dataset: Dataset, args: dict[str, Any]) -> ChangePlan:
    into = clean_label(dataset, args["into"], replaced=args["labels"])
    old = [label for label in dict.fromkeys(args["labels"]) if label != into]
    rows = sum(label_rows(dataset, label) for label in old)
    names = ", ".join(map(quoted, old[:3])) + (f" and {len(old) - 3} more" if len(old) > 3 else "")
    found = dataset.examples.filter(label__in=old).order_by("index").values_list("index", "label")

    def steps() -> Iterator[list[Step]]:
        while some := list(found[:CHUNK_ROWS]):  # changed rows are not found again
            yield [Step(index, {"label": was}, {"label": into}) for index, was in some]

    return ChangePlan(f"{names} merged into {quoted(into)} ({row_count(rows)})", rows, steps)


def _plan_deduplicate(dataset: Dataset, args: dict[str, Any]) -> ChangePlan:
    seen: set[tuple[int, str]] = set()
    gone = []
    order = dataset.examples.order_by("index").values_list("index", "text_key", "label", "split")
    for wanted in (True, False):  # test rows first: a training row must not replace one
        for index, key, label, split in order.iterator():
            if (split == Split.TEST) == wanted:
                if (key, label) in seen:
                    gone.append(index)
                seen.add((key, label))
    gone.sort()
    what = f"{row_count(len(gone))} deleted as duplicates"
    return ChangePlan(
        what, len(gone), lambda: (delete_steps(dataset, some) for some in chunks(gone))
    )


def _plan_split(dataset: Dataset, args: dict[str, Any]) -> ChangePlan:
    rows = list(
        dataset.examples.exclude(label="")
        .order_by("index")
        .values_list("index", "label", "text_key", "split")
    )
    # A text with a split in one row has it in all.
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
    what = f"{len(held):,} rows held out for testing"
    return ChangePlan(what, len(steps), lambda: map(list, chunks(steps)))


def _plan_matching(dataset: Dataset, args: dict[str, Any]) -> ChangePlan:
    action, value = args["action"], args["value"]
    filters = Filters.from_json(args["filters"])
    if action == "label":
        check_label_count(dataset, {value} - {""})
    found = browsing.rows(dataset, filters).order_by("index").values_list("index", flat=True)
    indices = list(found.iterator())
    doing: dict[str, tuple[str, Callable[[Sequence[int]], list[Step]]]] = {
        "label": (f"became {quoted(value)}", lambda some: label_steps(dataset, some, value)),
        "split": (split_phrase(value), lambda some: split_steps(dataset, some, value)),
        "delete": ("were deleted", lambda some: delete_steps(dataset, some)),
    }
    words, steps_of = doing[action]

    def steps() -> Iterator[list[Step]]:
        return filter(None, map(steps_of, chunks(indices)))

    return ChangePlan(f"{row_count(len(indices))} that match a filter {words}", len(indices), steps)


def _plan_undo(dataset: Dataset, args: dict[str, Any]) -> ChangePlan:
    last = dataset.revisions.get(number=args["number"])
    if last != last_undoable(dataset):
        raise ValueError("The dataset was changed meanwhile.")

    def steps() -> Iterator[list[Step]]:
        after = -1
        while some := list(
            last.changes.filter(index__gt=after)
            .order_by("index")
            .values_list("index", "before", "after")[:CHUNK_ROWS]
        ):
            after = some[-1][0]
            yield [Step(*change).inverse for change in some]

    return ChangePlan(f"Undone: {last.what}", last.rows, steps, undoes=last)


PLANNERS: dict[str, Planner] = {
    "merge": _plan_merge,
    "deduplicate": _plan_deduplicate,
    "split": _plan_split,
    "matching": _plan_matching,
    "undo": _plan_undo,
}
