"""Errors of datasets, with messages for the person who asked."""

from collections.abc import Iterable, Sequence
from itertools import islice

from apps.core.errors import DomainError
from apps.files import MAX_LABELS, RejectedRow


class BeingChanged(ValueError):
    """A change of many rows is in progress; other changes wait until it is done."""

    def __init__(self) -> None:
        super().__init__(
            "Many rows of this dataset are being changed. Try again when that is done."
        )


class SnapshotGone(Exception):
    """The dataset was deleted, and its rows with it."""


class UploadTooLarge(DomainError):
    """The files are larger than an upload may be."""

    status = 413
    code = "too_large"


class NothingUsable(DomainError):
    """No row can be used. `rejected` holds the first rows with their reasons."""

    code = "nothing_usable"

    def __init__(
        self, rejected: Sequence[RejectedRow], count: int, message: str | None = None
    ) -> None:
        found = "; ".join(
            f"row {row.row}{f', {row.column}' if row.column else ''}: {row.reason}"
            for row in rejected[:3]
        )
        super().__init__(
            message
            or (
                f"All {count:,} rows were rejected ({found})"
                if rejected
                else "No rows below the header."
            )
        )
        self.rejected = rejected


class TooManyLabels(NothingUsable):
    """So many labels that the column must hold something else."""

    def __init__(self, column: str, labels: Iterable[str]) -> None:
        some = ", ".join(f"“{label[:40]}”" for label in islice(labels, 3))
        super().__init__(
            [],
            0,
            f"The column “{column}” has more than {MAX_LABELS:,} labels ({some}, …). "
            "Check that the right column is the label.",
        )
