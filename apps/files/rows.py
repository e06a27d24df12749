"""Labelled texts as rows, and the checks that a row must pass. Knows nothing of files."""

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

MAX_TEXT = 100_000  # characters; no embedding model reads as much
MAX_LABEL = 200  # characters
MAX_LABELS = 1_000  # different ones; more is a column of something else
MAX_EXTRA_COLUMNS = 50
MAX_EXTRA_CELL = 1_000  # characters of an extra column that are kept
LABEL_SEPARATOR = " / "

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation", "held-out", "heldout"), "test"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
}

_UNDECODED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACING = re.compile(r"[\s_\-]+")


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """A text with its label, empty if it has none, and its split: None, "train", "validation" or
    "test".
    """

    text: str
    label: str
    split: str | None = None
    origin: str = ""
    """The source in a few words: "row 17"."""
    meta: dict[str, str] = field(default_factory=dict)
    """Cells of extra columns, by column name."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that cannot be used, with the reason. `column` is empty if the whole row is wrong."""

    row: int
    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns that hold text, label and split."""

    text: str
    label: str | None
    """None if the file has no labels: people add them later."""
    split: str | None = None
    second_label: str | None = None
    """Joined to the first with `LABEL_SEPARATOR`: "card / lost"."""
    keep_unlabelled: bool = False
    """Keep a row without a label, to be labelled later, instead of rejecting it."""
    keep_extra: bool = True
    """Keep the other columns with each row."""
    ignored: tuple[str, ...] = ()
    """Other columns that are left out nevertheless."""

    @property
    def columns(self) -> tuple[str, ...]:
        used = (self.text, self.label, self.second_label, self.split)
        return tuple(name for name in used if name)

    @property
    def accepts_unlabelled(self) -> bool:
        return self.label is None or self.keep_unlabelled


DEFAULT_MAPPING = ColumnMapping("text", "label", "split")


def check_row(
    row: ExampleRow,
    number: int,
    mapping: ColumnMapping = DEFAULT_MAPPING,
    *,
    unlabelled: bool = False,
) -> ExampleRow | RejectedRow:
    """Return the row with its label's stray spaces removed, or a rejection. Texts stay as they are.

    Args:
        mapping: names the source's columns, for the reason.
        unlabelled: accept a row without a label.
    """
    label = " ".join(row.label.split())
    label_column = mapping.label or "label"
    for column, value in ((mapping.text, row.text), (label_column, row.label)):
        if problem := _unreadable(value):
            return RejectedRow(number, column, problem)
    if problem := _text_problem(row.text):
        return RejectedRow(number, mapping.text, problem)
    if not label and not unlabelled:
        return RejectedRow(number, label_column, "The label is empty.")
    if len(label) > MAX_LABEL:
        return RejectedRow(
            number,
            label_column,
            f"The label has {len(label):,} characters and the limit is {MAX_LABEL}.",
        )
    split = (row.split or "").strip().casefold()
    if split and split not in SPLITS:
        return RejectedRow(
            number,
            mapping.split or "split",
            f"“{split[:40]}” is not a valid split. Use train, validation or test.",
        )
    return replace(row, label=label, split=SPLITS.get(split))


def _text_problem(text: str) -> str:
    if not text.strip():
        return "The text is empty."
    if len(text) > MAX_TEXT:
        return f"The text has {len(text):,} characters and the limit is {MAX_TEXT:,}."
    return ""


def _unreadable(value: str) -> str:
    """Name a character that no database and no model accepts; empty if there is none."""
    if value.isascii():
        return "The text contains a NUL character." if "\0" in value else ""
    if "\0" in value:
        return "The text contains a NUL character."
    if undecoded := _UNDECODED.search(value):
        byte = ord(undecoded[0]) - 0xDC00
        return f"Byte 0x{byte:02X} is not valid in the file’s encoding."
    if _SURROGATE.search(value):
        return "The text contains an unpaired surrogate."
    return ""


def label_key(label: str) -> str:
    """Return the same key for labels that differ only in case, spaces, underscores or hyphens."""
    return _SPACING.sub("", label.casefold())


def cell_text(value: Any) -> str:
    """Return a cell as text: 7.0 of a number column is "7", True is "true"."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):  # how pandas and NumPy write a missing cell
            return ""
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
    return str(value)
