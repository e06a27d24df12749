"""The steps of an edit, the checks of its labels and splits, and the words that describe it."""

from collections.abc import Sequence

from apps import files
from apps.datasets.models import Dataset, Split
from apps.datasets.rows.steps import ROW_FIELDS, Step, row_values
from apps.files import MAX_LABELS, ExampleRow, RejectedRow


def label_steps(dataset: Dataset, indices: Sequence[int], label: str) -> list[Step]:
    return [
        Step(index, {"label": old}, {"label": label})
        for index, old in row_values(dataset, indices, "label")
        if old != label
    ]


def split_steps(dataset: Dataset, indices: Sequence[int], split: str) -> list[Step]:
    return [
        Step(index, {"split": old}, {"split": split})
        for index, old in row_values(dataset, indices, "split")
        if old != split
    ]


def delete_steps(dataset: Dataset, indices: Sequence[int]) -> list[Step]:
    return [
        Step(index, dict(zip(ROW_FIELDS, row, strict=True)), None)
        for index, *row in row_values(dataset, indices, *ROW_FIELDS)
    ]


def check_split(split: str) -> None:
    if split not in Split.values:
        raise ValueError(f"“{split[:40]}” is not a valid split. Use train, validation or test.")


def split_phrase(split: str) -> str:
    return f"moved to {split}" if split else "removed from their split"


def clean_label(dataset: Dataset, label: str, *, replaced: Sequence[str] = ()) -> str:
    """Return the label without stray spaces.

    Args:
        replaced: labels that it takes the place of.

    Raises:
        ValueError: the label is too long, or one too many.
    """
    row = files.check_row(ExampleRow("a text", label), 1, unlabelled=True)
    if isinstance(row, RejectedRow):
        raise ValueError(row.reason)
    check_label_count(dataset, {row.label} - {""}, replaced=replaced)
    return row.label


def check_label_count(dataset: Dataset, labels: set[str], *, replaced: Sequence[str] = ()) -> None:
    if len(labels | set(dataset.label_counts).difference(replaced)) > MAX_LABELS:
        raise ValueError(f"Too many labels. The limit is {MAX_LABELS:,} per dataset.")


def label_rows(dataset: Dataset, label: str) -> int:
    return int(dataset.label_counts.get(label, 0)) if label else dataset.unlabelled


def quoted(label: str) -> str:
    return f"“{label}”" if label else "unlabelled"


def row_count(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
