"""The preview of an upload: its first rows under the columns as guessed or chosen."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.http import QueryDict

from apps import files as apps_files
from apps.datasets.imports import import_queue
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.models import Split, Upload
from apps.files import (
    ColumnMapping,
    FileKind,
    FormatError,
    Layout,
    Quoting,
    ReadOptions,
    RejectedRow,
)

PREVIEW_ROWS = 8
SEPARATORS = [
    ("", "found"),
    (",", "comma"),
    (";", "semicolon"),
    ("tab", "tab"),
    ("|", "vertical bar"),
    ("none", "None (one text per line)"),
]
QUOTINGS = [
    ("", "Detect automatically"),
    (Quoting.STANDARD.value, "Standard: a quoted cell can hold line breaks"),
    (Quoting.NONE.value, "None: quotes are ordinary characters"),
]
SUSPECTS_SHOWN = 5
_SEPARATOR_OF = {",": ",", ";": ";", "tab": "\t", "|": "|", "none": ""}


@dataclass(frozen=True, slots=True)
class ImportForm:
    mapping: ColumnMapping | None
    read: ReadOptions
    name: str = ""


def read_form(data: QueryDict) -> ImportForm:
    """Read the form; without values on the first visit."""
    if "text" not in data:
        return ImportForm(None, ReadOptions())
    column = {name: str(data.get(name) or "") for name in ("text", "label", "label2", "split")}
    mapping = ColumnMapping(
        column["text"],
        column["label"] or None,
        column["split"] or None,
        second_label=column["label2"] or None,
        keep_unlabelled="keep_unlabelled" in data,
        keep_extra="keep_extra" in data or "has_extra" not in data,
    )
    encoding = str(data.get("encoding") or "")
    quoting = str(data.get("quoting") or "")
    read = ReadOptions(
        header="header" in data if "has_header" in data else None,
        separator=_SEPARATOR_OF.get(str(data.get("separator") or "")),
        encoding=encoding if encoding in apps_files.ENCODINGS else None,
        sheet=str(data.get("sheet") or "") or None,
        quoting=Quoting(quoting) if quoting in {"standard", "none"} else None,
    )
    return ImportForm(mapping, read, str(data.get("name") or ""))


def preview_context(found: Upload, form: ImportForm) -> dict[str, Any]:
    first = found.files[0]
    try:
        layout = apps_files.detect_layout(found.path, name=first["name"], options=form.read)
        guess = apps_files.detect_mapping(found.path, layout)
        problem = ""
    except FormatError as error:  # of an option that was chosen: show what was detected
        form = ImportForm(None, ReadOptions())
        layout = apps_files.detect_layout(found.path, name=first["name"])
        guess = apps_files.detect_mapping(found.path, layout)
        problem = str(error)
    mapping = form.mapping
    if mapping is None or not set(mapping.columns) <= {*layout.columns, *layout.paths}:
        mapping = (
            guess  # the header came or went
            if mapping is None
            else replace(
                guess, keep_unlabelled=mapping.keep_unlabelled, keep_extra=mapping.keep_extra
            )
        )
    if not problem:
        try:
            check_files(found, ImportOptions("", mapping, form.read))
        except FormatError as error:
            problem = str(error)
    extra = apps_files.extra_columns(layout, mapping)
    columns = [name for name in mapping.columns if name in layout.paths]
    columns += [name for name in layout.columns if name not in columns]
    rows = apps_files.sample_rows(found.path, layout, limit=PREVIEW_ROWS, columns=columns)
    surveyed = apps_files.count_lines(found.path, layout)
    suspects = surveyed[0].suspects if surveyed else []
    return {
        "upload": found,
        "layout": layout,
        "mapping": mapping,
        "read_options": form.read,
        "problem": problem,
        "name": form.name or Path(first["name"]).stem,
        "small": not problem and import_queue.is_small(found, form.read),
        "columns": [{"name": name, "role": _role(name, mapping, extra)} for name in columns],
        "choices": [name for name in layout.columns if name not in layout.object_columns],
        "rows": [
            [
                {
                    "text": cell[:300],
                    "role": _role(name, mapping, extra),
                    "suspect": layout.kind is FileKind.CSV and _is_suspect(cell, layout),
                }
                for name, cell in zip(columns, row, strict=True)
            ]
            for row in rows
        ],
        "survey": surveyed[0] if surveyed else None,
        "surveyed_all": bool(surveyed and surveyed[1]),
        "suspects": _suspects(found, layout, suspects),
        "quotings": QUOTINGS,
        "separators": SEPARATORS,
        "separator_choice": _separator_choice(form.read),
        "encodings": apps_files.ENCODINGS.items(),
        "joined_by": apps_files.LABEL_SEPARATOR,
        "splits": [value for value in Split.values if value],
        "rejections": [] if problem else _sample_rejections(found, layout, mapping),
    }


def _is_suspect(cell: str, layout: Layout) -> bool:
    """Return True if a cell may hold other rows, or a quote that does not close."""
    if layout.quoting is Quoting.NONE:
        return False
    lines = cell.splitlines()
    return cell.startswith('"') or any(layout.separator in line for line in lines[1:])


def _suspects(found: Upload, layout: Layout, numbers: list[int]) -> list[dict[str, Any]]:
    """Return the first rows that a stray quote may have made, with their cells."""
    if not numbers:
        return []
    wanted = set(numbers[:SUSPECTS_SHOWN])
    shown = []
    for number, cells in apps_files.read_records(found.path, layout):
        if number in wanted:
            texts = [cells.reason] if isinstance(cells, RejectedRow) else cells.values()
            shown.append({"row": number, "text": " │ ".join(text[:200] for text in texts)[:600]})
        if number >= max(wanted):
            break
    return shown


def _separator_choice(read: ReadOptions) -> str:
    return next((key for key, value in _SEPARATOR_OF.items() if value == read.separator), "")


def _role(column: str, mapping: ColumnMapping, extra: tuple[str, ...]) -> str:
    roles = dict.fromkeys(extra, "kept")
    roles |= {mapping.split or "": "split", mapping.second_label or "": "label"}
    roles |= {mapping.label or "": "label", mapping.text: "text"}
    return roles.get(column, "")


def _sample_rejections(found: Upload, layout: Layout, mapping: ColumnMapping) -> list[RejectedRow]:
    rejections = []
    rows = apps_files.read_checked_rows(
        found.path, layout, mapping, max_characters=apps_files.SAMPLE_CHARACTERS
    )
    for seen, row in enumerate(rows):
        if isinstance(row, RejectedRow):
            rejections.append(row)
        if seen == apps_files.SAMPLE_ROWS:
            break
    return rejections
