"""Reasons to check a cell of an import before its rows are imported."""

from collections.abc import Iterable

from apps import files as apps_files
from apps.files import ColumnMapping, FileKind, Layout, Quoting

LONG_TEXT = 4_000


def cell_warning(
    cell: str, column: str, layout: Layout, mapping: ColumnMapping, alike: dict[str, str]
) -> str:
    """Return the reason to check a cell, as a fragment; "" for an ordinary one."""
    if layout.kind is FileKind.CSV and (reason := _quote_warning(cell, layout)):
        return reason
    stripped = cell.strip()
    if column == mapping.text:
        return _text_warning(stripped)
    if column != mapping.label:
        return ""
    if not stripped:
        return "Imported without a label" if mapping.accepts_unlabelled else "No label"
    return f"Also “{alike[stripped]}”" if stripped in alike else ""


def _text_warning(text: str) -> str:
    if len(text) < 2:
        return "One character" if text else "No text"
    return f"{len(text):,} characters" if len(text) > LONG_TEXT else ""


def alike_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return each label that differs from an earlier one only in case, spaces or hyphens."""
    first: dict[str, str] = {}
    alike: dict[str, str] = {}
    for label in filter(None, (label.strip() for label in labels)):
        other = first.setdefault(apps_files.label_key(label), label)
        if other != label:
            alike[label] = other
    return alike


def _quote_warning(cell: str, layout: Layout) -> str:
    if layout.quoting is Quoting.NONE:
        return ""
    lines = cell.splitlines()
    if any(layout.separator in line for line in lines[1:]):
        return f"Contains {len(lines)} lines"
    return "Starts with a stray quote" if cell.startswith('"') else ""
