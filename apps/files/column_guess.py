"""Which column is what: by name where one is known, else by what the cells look like."""

from collections.abc import Sequence

from apps.files.rows import SPLITS, Mapping

# Names people give their columns, the likeliest first.
TEXT_NAMES = (
    *("text", "sentence", "utterance", "message", "sms", "query", "question", "content", "review"),
    *("comment", "body", "description", "input", "prompt", "tweet", "document", "title"),
)
LABEL_NAMES = (
    *("label_text", "label_name", "label", "labels", "intent", "category", "class", "target"),
    *("sentiment", "topic", "tag", "type", "emotion", "output", "y"),
)
NESTED_LABEL_NAMES = ("choices", *LABEL_NAMES)  # Label Studio's come first
SPLIT_NAMES = ("split", "subset", "partition", "fold", "set")
KNOWN_NAMES = {*TEXT_NAMES, *LABEL_NAMES, *SPLIT_NAMES, "id", "index"}


def guess_mapping(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Mapping:
    """The text column has the longest cells, the label column those that repeat most.

    A file of one column has no labels. A nested field, "data.text", is known by its last name, and
    only by that.
    """
    names = {column.casefold().replace(" ", "_"): column for column in reversed(columns)}
    nested = {_last_name(column): column for column in reversed(columns) if _is_nested(column)}
    text = next((names[name] for name in TEXT_NAMES if name in names), None)
    text = text or next((nested[name] for name in TEXT_NAMES if name in nested), None)
    label = next((names[name] for name in LABEL_NAMES if name in names), None)
    label = label or next((nested[name] for name in NESTED_LABEL_NAMES if name in nested), None)
    split = next((names[name] for name in SPLIT_NAMES if name in names), None)
    if split is None or not _are_splits(_column(columns, rows, split), share=0.8):
        split = next((c for c in columns if _are_splits(_column(columns, rows, c))), None)
    if len(columns) == 1:
        return Mapping(columns[0], None)
    free = [c for c in columns if c not in {text, label, split} and not _is_nested(c)]
    free = free or list(columns)
    if text is None:
        text = max(free, key=lambda column: _mean_length(_column(columns, rows, column)))
        free = [column for column in free if column != text]
    if label is None and free and not _is_nested(text):
        label = min(free, key=lambda column: _distinct_share(_column(columns, rows, column)))
    return Mapping(text, label, split)


def guess_split(file_name: str) -> str | None:
    """The split a file's name speaks of: "banking77_test.csv" holds the test rows."""
    words = file_name.casefold().rsplit(".", 1)[0].replace("-", "_").replace(" ", "_").split("_")
    found = [SPLITS[word] for word in words if word in SPLITS]
    return found[-1] if found else None


def _is_nested(column: str) -> bool:
    return "." in column


def _last_name(column: str) -> str:
    """Of "annotations.0.result.0.value.choices.0" it is "choices"."""
    parts = [part for part in column.split(".") if not part.isdecimal()]
    return (parts or [column])[-1].casefold().replace(" ", "_")


def _column(columns: Sequence[str], rows: Sequence[Sequence[str]], name: str | None) -> list[str]:
    if name is None:
        return []
    place = list(columns).index(name)
    return [row[place] for row in rows if place < len(row)]


def _are_splits(cells: list[str], *, share: float = 1.0) -> bool:
    """At least that share are names of splits; a misspelt one is then reported."""
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
