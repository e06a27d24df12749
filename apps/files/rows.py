"""What a row of a dataset is, and what makes one unusable. Knows nothing of files."""

import hashlib
import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

MAX_TEXT = 100_000  # characters; no embedding model reads as much
MAX_LABEL = 200  # characters
MAX_LABELS = 1_000  # different ones; more is a column of something else
MAX_EXTRA_COLUMNS = 50
MAX_EXTRA_CELL = 1_000  # characters of an extra column that are kept
JOINED_BY = " / "

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation", "held-out", "heldout"), "test"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
}

_UNDECODED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACING = re.compile(r"[\s_\-]+")


class FormatError(Exception):
    """The file as a whole cannot be read. The message says what to do."""


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """One text, and what is said of it.

    `label` is empty while nobody has given one. `split` is None, "train", "validation" or "test".
    """

    text: str
    label: str
    split: str | None = None
    origin: str = ""
    """Where it came from, in a few words: "row 17"."""
    meta: dict[str, str] = field(default_factory=dict)
    """The cells of the columns that are neither text, label nor split."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that cannot be used, and why. `column` is empty where the row as a whole is wrong."""

    row: int
    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which column is what."""

    text: str
    label: str | None
    """None where the file has no labels: they are given later, by hand."""
    split: str | None = None
    second_label: str | None = None
    """Joined to the first with `JOINED_BY`: "card / lost"."""
    keep_unlabelled: bool = False
    """Whether a row without a label is kept to be labelled here, or rejected."""
    keep_extra: bool = True
    """Whether the other columns are kept with each row."""

    @property
    def columns(self) -> tuple[str, ...]:
        used = (self.text, self.label, self.second_label, self.split)
        return tuple(name for name in used if name)

    @property
    def takes_unlabelled(self) -> bool:
        return self.label is None or self.keep_unlabelled


NAMES = Mapping("text", "label", "split")


def checked(
    row: ExampleRow, number: int, names: Mapping = NAMES, *, unlabelled: bool = False
) -> ExampleRow | RejectedRow:
    """The row with its label's stray spaces removed, or why it cannot be used. Texts stay as is.

    Args:
        names: what the source calls its columns, for the reason.
        unlabelled: whether a row without a label is taken.
    """
    label = " ".join(row.label.split())
    label_column = names.label or "label"
    for column, value in ((names.text, row.text), (label_column, row.label)):
        if problem := _unreadable(value):
            return RejectedRow(number, column, problem)
    if not row.text.strip():
        return RejectedRow(number, names.text, "The text is empty.")
    if len(row.text) > MAX_TEXT:
        return RejectedRow(
            number,
            names.text,
            f"The text has {len(row.text):,} characters and the limit is {MAX_TEXT:,}.",
        )
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
            names.split or "split",
            f"“{split[:40]}” is not a valid split. Use train, validation or test.",
        )
    return replace(row, label=label, split=SPLITS.get(split))


def _unreadable(value: str) -> str:
    """What no database and no model would take, in words; empty where nothing is wrong."""
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


def duplicate_key(text: str) -> str:
    """Texts that differ only in case and outer spaces are the same text to a reader."""
    return text.casefold().strip()


def text_key(text: str) -> int:
    """64 bits of the duplicate key, signed as a database keeps them.

    Among a million texts two different ones share a key with a probability of 3e-8.
    """
    key = hashlib.blake2b(duplicate_key(text).encode(), digest_size=8).digest()
    return int.from_bytes(key, "big", signed=True)


def label_key(label: str) -> str:
    """Labels that differ only in case, spaces, underscores or hyphens mean the same."""
    return _SPACING.sub("", label.casefold())


def plain(value: Any) -> str:
    """A cell as text: 7.0 of a number column is the label "7", true is "true"."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):  # how pandas and NumPy write a cell that is not there
            return ""
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
    return str(value)
