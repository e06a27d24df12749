"""Issues of a dataset, and the rows they concern."""

from collections import defaultdict
from enum import StrEnum
from typing import Any, TypedDict

from django.db import models
from django.db.models import Case, Count, Max, Min, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Length, NullIf

from apps import files
from apps.datasets import hooks
from apps.datasets.models import Dataset, Example, Split

NEAR_EMPTY = 10  # rows; with fewer, a label's score is a coin toss
SHOWN = 50  # groups of labels


class Issue(StrEnum):
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    LEAK = "leak"
    NEAR = "near"
    LONG = "long"
    FEW = "few"


WORDS = {
    Issue.DUPLICATE: "Duplicates",
    Issue.CONFLICT: "Conflicting labels",
    Issue.LEAK: "Test rows in training (leak)",
    Issue.NEAR: "Near-duplicates",
    Issue.LONG: "Too long",
    Issue.FEW: "Rare labels",
}


class LabelCount(TypedDict):
    label: str
    count: int


class ReportedLimit(TypedDict):
    model: str
    tokens: int
    characters: int


class Report(TypedDict):
    version: int
    limit: ReportedLimit | None
    """The embedding model's."""
    repeated: int
    """Rows whose text was there before."""
    duplicate_rows: int
    """All rows of texts that are there more than once."""
    conflict_texts: int
    conflict_rows: int
    leak_rows: int
    """Test rows whose text is also in another split."""
    long_rows: int
    few: list[LabelCount]
    variants: list[list[LabelCount]]
    """Labels that differ only in case or spacing, the most frequent of each group first."""
    one_label: bool
    numbers: bool
    """All labels are numbers: perhaps there is a column with their names."""


def report(dataset: Dataset) -> Report:
    """Return the findings for the current version; inspected again only when it changed."""
    limit = hooks.text_limit()
    known: Any = dataset.report
    if known and known["version"] == dataset.version and known["limit"] == _as_json(limit):
        return known  # type: ignore[no-any-return]
    found = _inspect(dataset, limit)
    Dataset.objects.filter(pk=dataset.pk, version=dataset.version).update(report=found)
    dataset.report = dict(found)
    return found


def is_clean(found: Report) -> bool:
    """Return True if nothing needs fixing before training."""
    return not (
        found["repeated"]
        or found["conflict_texts"]
        or found["leak_rows"]
        or found["long_rows"]
        or found["few"]
        or found["variants"]
        or found["one_label"]
        or found["numbers"]
    )


def rows_with(dataset: Dataset, issue: Issue) -> QuerySet[Example]:
    """Return the rows an issue concerns."""
    rows = dataset.examples.all()
    texts = _texts(dataset)
    match issue:
        case Issue.DUPLICATE:
            return rows.filter(text_key__in=texts.filter(n__gt=1).values("text_key"))
        case Issue.CONFLICT:
            return rows.filter(text_key__in=texts.filter(labels__gt=1).values("text_key"))
        case Issue.LEAK:
            return rows.filter(
                text_key__in=texts.filter(first_side=0, last_side=1).values("text_key")
            )
        case Issue.NEAR:
            pairs = dataset.near_duplicates.all()
            return rows.filter(
                Q(index__in=pairs.values("index")) | Q(index__in=pairs.values("other_index"))
            )
        case Issue.LONG:
            limit = hooks.text_limit()
            if limit is None:
                return rows.none()
            return rows.annotate(length=Length("text")).filter(length__gt=limit.characters)
        case Issue.FEW:
            few = [label for label, count in dataset.label_counts.items() if count < NEAR_EMPTY]
            return rows.filter(label__in=few[:900])


def exact_leaks(train: Dataset, test: Dataset) -> list[tuple[int, int]]:
    """Return the indices of test rows with a text of another dataset, each with one there."""
    there = dict(train.examples.order_by("-index").values_list("text_key", "index").iterator())
    rows = test.examples.order_by("index").values_list("index", "text_key").iterator()
    return [(index, there[key]) for index, key in rows if key in there]


def _texts(dataset: Dataset) -> Any:  # a queryset whose columns the stubs cannot know
    """Group rows by text: how many, under how many labels, on which sides of the split."""
    side = Case(
        When(split=Split.TEST, then=Value(1)), default=Value(0), output_field=models.IntegerField()
    )
    return (
        Example.objects.filter(dataset=dataset)
        .order_by()
        .values("text_key")
        .annotate(
            n=Count("pk"),
            labels=Count(NullIf("label", Value("")), distinct=True),
            first_side=Min(side),
            last_side=Max(side),
        )
    )


def _inspect(dataset: Dataset, limit: hooks.TextLimit | None) -> Report:
    sums = (
        _texts(dataset)
        .filter(n__gt=1)
        .aggregate(
            rows=Sum("n"),
            texts=Count("text_key"),
            conflict_texts=Count("text_key", filter=Q(labels__gt=1)),
            conflict_rows=Sum("n", filter=Q(labels__gt=1)),
        )
    )
    leaks = rows_with(dataset, Issue.LEAK).filter(split=Split.TEST)
    counts = dataset.label_counts
    return Report(
        version=dataset.version,
        limit=_as_json(limit),
        repeated=(sums["rows"] or 0) - sums["texts"],
        duplicate_rows=sums["rows"] or 0,
        conflict_texts=sums["conflict_texts"],
        conflict_rows=sums["conflict_rows"] or 0,
        leak_rows=leaks.count() if dataset.test_rows else 0,
        long_rows=rows_with(dataset, Issue.LONG).count(),
        few=[
            LabelCount(label=label, count=count)
            for label, count in sorted(counts.items(), key=lambda item: (item[1], item[0]))
            if count < NEAR_EMPTY
        ],
        variants=label_variants(counts)[:SHOWN],
        one_label=len(counts) == 1,
        numbers=len(counts) > 1 and all(_is_number(label) for label in counts),
    )


def label_variants(counts: dict[str, int]) -> list[list[LabelCount]]:
    """Group labels that differ only in case or spacing."""
    groups: dict[str, list[LabelCount]] = defaultdict(list)
    for label, count in counts.items():
        groups[files.label_key(label)].append(LabelCount(label=label, count=count))
    return [
        sorted(group, key=lambda entry: (-entry["count"], entry["label"]))
        for _, group in sorted(groups.items())
        if len(group) > 1
    ]


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _as_json(limit: hooks.TextLimit | None) -> ReportedLimit | None:
    if limit is None:
        return None
    return {"model": limit.model, "tokens": limit.tokens, "characters": limit.characters}
