"""Reasons to check a cell of an import before its rows are imported."""

from collections import Counter
from dataclasses import dataclass, field

from apps import files as apps_files
from apps.files import ColumnMapping, FileKind, Layout, Quoting, RejectedRow

LONG_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class CellChecker:
    """Finds what is suspicious in the cells of a table."""

    layout: Layout
    mapping: ColumnMapping
    alike: dict[str, str] = field(default_factory=dict)
    """The more frequent spelling of a label that differs only in case, spaces or hyphens."""
    label_counts: Counter[str] = field(default_factory=Counter)

    def warning(self, cell: str, column: str, line: int) -> str:
        """Return the reason to check a cell, as a fragment; "" for an ordinary one."""
        if self.layout.kind is FileKind.CSV and (reason := self._quote_warning(cell, line)):
            return reason
        stripped = " ".join(cell.split())
        if column == self.mapping.text:
            return _text_warning(stripped)
        if column != self.mapping.label:
            return ""
        if not stripped:
            kept = self.mapping.accepts_unlabelled
            return "Imported without a label" if kept else "No label, left out"
        if other := self.alike.get(stripped):
            count = self.label_counts[other]
            return f"Also “{other}” ({count:,} row{'' if count == 1 else 's'})"
        return ""

    def _quote_warning(self, cell: str, line: int) -> str:
        if self.layout.quoting is Quoting.NONE:
            return ""
        lines = cell.splitlines()
        if any(self.layout.separator in inner for inner in lines[1:]):
            return f"Contains lines {line:,} to {line + len(lines) - 1:,}"
        return "Starts with a stray quote" if cell.startswith('"') else ""


def _text_warning(text: str) -> str:
    if len(text) < 2:
        return "One character" if text else "No text, left out"
    return f"{len(text):,} characters" if len(text) > LONG_TEXT else ""


def rejection_warning(rejected: RejectedRow) -> str:
    """Return the reason of a rejection as a warning."""
    return f"{rejected.reason} Left out."


def alike_labels(counts: Counter[str]) -> dict[str, str]:
    """Return the most frequent spelling for each label that differs from it only in case, spaces
    or hyphens.
    """
    best: dict[str, str] = {}
    for label, _ in counts.most_common():
        best.setdefault(apps_files.label_key(label), label)
    others = {label: best[apps_files.label_key(label)] for label in counts}
    return {label: other for label, other in others.items() if label != other}
