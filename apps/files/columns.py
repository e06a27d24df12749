"""Text, label and split columns, guessed by name, else by the look of their cells."""

from collections.abc import Sequence

from apps.files.rows import SPLITS, ColumnMapping

# Names people give their columns, the most likely first.
TEXT_COLUMN_NAMES = (
    *("text", "sentence", "utterance", "message", "sms", "query", "question", "content", "review"),
    *("comment", "body", "description", "input", "prompt", "tweet", "document", "title"),
)
LABEL_COLUMN_NAMES = (
    *("label_text", "label_name", "label", "labels", "intent", "category", "class", "target"),
    *("sentiment", "topic", "tag", "type", "emotion", "output", "y"),
)
NESTED_LABEL_NAMES = ("choices", *LABEL_COLUMN_NAMES)  # Label Studio's come first
SPLIT_COLUMN_NAMES = ("split", "subset", "partition", "fold", "set")
KNOWN_COLUMN_NAMES = {*TEXT_COLUMN_NAMES, *LABEL_COLUMN_NAMES, *SPLIT_COLUMN_NAMES, "id", "index"}


def guess_mapping(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> ColumnMapping:
    """Guess the columns: by their names, else the text has the longest cells and the label those
    that repeat most.

    A file with one column has no labels. A nested field such as "data.text" is recognised by its
    last name only.

    Args:
        rows: the cells of the first rows, in the order of the columns.
    """
    names = {column.casefold().replace(" ", "_"): column for column in reversed(columns)}
    nested = {_last_name(column): column for column in reversed(columns) if _is_nested(column)}
    text = next((names[name] for name in TEXT_COLUMN_NAMES if name in names), None)
    text = text or next((nested[name] for name in TEXT_COLUMN_NAMES if name in nested), None)
    label = next((names[name] for name in LABEL_COLUMN_NAMES if name in names), None)
    label = label or next((nested[name] for name in NESTED_LABEL_NAMES if name in nested), None)
    split = next((names[name] for name in SPLIT_COLUMN_NAMES if name in names), None)
    if split is None or not _are_splits(_column(columns, rows, split), share=0.8):
        split = next((c for c in columns if _are_splits(_column(columns, rows, c))), None)
    if len(columns) == 1:
        return ColumnMapping(columns[0], None)
    free = [c for c in columns if c not in {text, label, split} and not _is_nested(c)]
    free = free or list(columns)
    if text is None:
        text = max(free, key=lambda column: _mean_length(_column(columns, rows, column)))
        free = [column for column in free if column != text]
    if label is None and free and not _is_nested(text):
        label = min(free, key=lambda column: _distinct_share(_column(columns, rows, column)))
    return ColumnMapping(text, label, split)


def split_of_file_name(file_name: str) -> str | None:
    """Return the split in a file's name: "banking77_test.csv" holds the test rows."""
    words = file_name.casefold().rsplit(".", 1)[0].replace("-", "_").replace(" ", "_").split("_")
    found = [SPLITS[word] for word in words if word in SPLITS]
    return found[-1] if found else None


def _is_nested(column: str) -> bool:
    return "." in column


def _last_name(column: str) -> str:
    """Return "choices" for "annotations.0.result.0.value.choices.0"."""
    parts = [part for part in column.split(".") if not part.isdecimal()]
    return (parts or [column])[-1].casefold().replace(" ", "_")


def _column(columns: Sequence[str], rows: Sequence[Sequence[str]], name: str | None) -> list[str]:
    if name is None:
        return []
    place = list(columns).index(name)
    return [row[place] for row in rows if place < len(row)]


def _are_splits(cells: list[str], *, share: float = 1.0) -> bool:
    """Return True if at least this share are names of splits; others are rejected later."""
    filled = [cell.strip().casefold() for cell in cells if cell.strip()]
    return bool(filled) and sum(cell in SPLITS for cell in filled) >= share * len(filled)


def _mean_length(cells: list[str]) -> float:
    return sum(map(len, cells)) / max(len(cells), 1)


def _distinct_share(cells: list[str]) -> float:
    filled = [cell.strip() for cell in cells if cell.strip()]
    if not filled:
        return 2.0
    # A label is on every row: a column with gaps is something else.
    return len(set(filled)) / len(filled) + (len(cells) - len(filled)) / len(cells)
