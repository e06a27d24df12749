"""The preview of an upload: its first rows under the columns as guessed or chosen."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.http import QueryDict

from apps import files as apps_files
from apps.datasets.imports import import_queue
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.models import Split, Upload
from apps.datasets.views.cell_warnings import alike_labels, cell_warning
from apps.files import (
    ColumnMapping,
    FormatError,
    Layout,
    Quoting,
    ReadOptions,
    RejectedRow,
)

PREVIEW_ROWS = 8
SEPARATORS = [
    ("", "Detect automatically"),
    (",", "Comma"),
    (";", "Semicolon"),
    ("tab", "Tab"),
    ("|", "Vertical bar"),
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


@dataclass(frozen=True, slots=True)
class _Detected:
    """An upload as it is read with the chosen options, or with none where these do not fit."""

    form: ImportForm
    layout: Layout
    mapping: ColumnMapping
    problem: str
    """Why the chosen options cannot be used, as a sentence; else ""."""


def preview_context(found: Upload, form: ImportForm) -> dict[str, Any]:
    detected = _detect(found, form)
    layout, mapping, read = detected.layout, detected.mapping, detected.form.read
    surveyed = apps_files.count_lines(found.path, layout)
    return {
        "upload": found,
        "layout": layout,
        "mapping": mapping,
        "read_options": read,
        "problem": detected.problem,
        "name": detected.form.name or Path(found.files[0]["name"]).stem,
        "small": not detected.problem and import_queue.is_small(found, read),
        "choices": [name for name in layout.columns if name not in layout.object_columns],
        **_sample_table(found, layout, mapping),
        "survey": surveyed[0] if surveyed else None,
        "surveyed_all": bool(surveyed and surveyed[1]),
        "suspects": _suspects(found, layout, surveyed[0].suspects if surveyed else []),
        "quotings": QUOTINGS,
        "separators": SEPARATORS,
        "separator_choice": _separator_choice(read),
        "encodings": apps_files.ENCODINGS.items(),
        "joined_by": apps_files.LABEL_SEPARATOR,
        "splits": [value for value in Split.values if value],
        "rejections": [] if detected.problem else _sample_rejections(found, layout, mapping),
    }


def _detect(found: Upload, form: ImportForm) -> _Detected:
    name, problem = found.files[0]["name"], ""
    try:
        layout = apps_files.detect_layout(found.path, name=name, options=form.read)
        guess = apps_files.detect_mapping(found.path, layout)
    except FormatError as error:  # of an option that was chosen: show what was detected
        form = ImportForm(None, ReadOptions())
        layout = apps_files.detect_layout(found.path, name=name)
        guess = apps_files.detect_mapping(found.path, layout)
        problem = str(error)
    mapping = _usable_mapping(form.mapping, guess, layout)
    if not problem:
        try:
            check_files(found, ImportOptions("", mapping, form.read))
        except FormatError as error:
            problem = str(error)
    return _Detected(form, layout, mapping, problem)


def _usable_mapping(
    chosen: ColumnMapping | None, guess: ColumnMapping, layout: Layout
) -> ColumnMapping:
    """Return the chosen mapping; the guess if its columns are gone, as when the header changes."""
    if chosen is None:
        return guess
    if set(chosen.columns) <= {*layout.columns, *layout.paths}:
        return chosen
    return replace(guess, keep_unlabelled=chosen.keep_unlabelled, keep_extra=chosen.keep_extra)


def _sample_table(found: Upload, layout: Layout, mapping: ColumnMapping) -> dict[str, Any]:
    """Return the first rows and their columns, each with its role."""
    extra = apps_files.extra_columns(layout, mapping)
    columns = [name for name in mapping.columns if name in layout.paths]
    columns += [name for name in layout.columns if name not in columns]
    rows = apps_files.sample_rows(found.path, layout, columns=columns)
    roles = [_role(name, mapping, extra) for name in columns]
    label = columns.index(mapping.label) if mapping.label in columns else None
    alike = {} if label is None else alike_labels(row[label] for row in rows)
    return {
        "columns": [{"name": n, "role": role} for n, role in zip(columns, roles, strict=True)],
        "rows": [
            [
                {
                    "text": cell[:300],
                    "role": role,
                    "warning": cell_warning(cell, name, layout, mapping, alike),
                }
                for name, role, cell in zip(columns, roles, row, strict=True)
            ]
            for row in rows[:PREVIEW_ROWS]
        ],
    }


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
