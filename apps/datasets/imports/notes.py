"""Notes on an import for the dataset's page: how each file was read, and what to check."""

from collections.abc import Sequence

from apps.datasets.models import Upload
from apps.files import Layout, LineCounts


def import_notes(
    upload: Upload, layouts: Sequence[Layout], counts: Sequence[LineCounts]
) -> list[str]:
    """Return the notes as sentences."""
    notes = []
    for file, layout, lines in zip(upload.files, layouts, counts, strict=True):
        counted = f" {lines.description}" if lines.lines else ""
        if len(layouts) == 1:
            notes.append(f"Read as {layout.description}.{counted}")
        else:
            split = _as_split(file["split"])
            notes.append(f"{file['name']}: {layout.description}{split}.{counted}")
        if lines.suspects:
            notes.append(f"Rows to check for stray quotes: {_numbers(lines.suspects)}.")
    if stray := sum(layout.cleaned_names for layout in layouts):
        names = "column name" if stray == 1 else "column names"
        notes.append(f"Extra spaces removed from {stray} {names}.")
    return notes


def _numbers(rows: Sequence[int]) -> str:
    return f"{', '.join(f'{row:,}' for row in rows[:5])}{', …' if len(rows) > 5 else ''}"


def _as_split(split: str) -> str:
    return f", split: {split}" if split else ""
