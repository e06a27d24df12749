"""The preview of an upload: its first rows under the columns as guessed or chosen."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apps import files as apps_files
from apps.datasets.imports import import_queue
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.imports.survey import Survey, SurveyedRow, count_rows, survey_upload
from apps.datasets.models import Split, Upload
from apps.datasets.views.import_form import (
    QUOTINGS,
    ROLE_NAMES,
    SEPARATORS,
    ImportForm,
    role_of,
    separator_choice,
)
from apps.files import (
    LABEL_SEPARATOR,
    ColumnMapping,
    FileKind,
    FormatError,
    Layout,
    Quoting,
    ReadOptions,
)

MAX_COLUMNS_SHOWN = 40
CELL_CHARACTERS = 300
HEADERLESS = (FileKind.JSONL, FileKind.JSON, FileKind.PARQUET)


@dataclass(frozen=True, slots=True)
class _Detected:
    """An upload as it is read with the chosen options, or with none where these do not fit."""

    form: ImportForm
    layouts: list[Layout]
    """Of each file; of the first alone where the options do not fit all."""
    mapping: ColumnMapping
    problem: str
    """Why the chosen options cannot be used, as a sentence; else ""."""

    @property
    def options(self) -> ImportOptions:
        return ImportOptions("", self.mapping, self.form.read)


def preview_context(found: Upload, form: ImportForm) -> dict[str, Any]:
    detected = _detect(found, form)
    layout, mapping, read = detected.layouts[0], detected.mapping, detected.form.read
    columns = _columns(layout, mapping, detected.form.added)
    survey = survey_upload(found, detected.options, detected.layouts, columns)
    unfixed = bool(survey.swallowed_lines) and layout.quoting is not Quoting.NONE
    extra = apps_files.extra_columns(layout, mapping)
    return {
        "upload": found,
        "layout": layout,
        "mapping": mapping,
        "read_options": read,
        "problem": detected.problem,
        "name": detected.form.name or Path(found.files[0]["name"]).stem,
        "small": not detected.problem and import_queue.is_small(found, read),
        "survey": survey,
        "summary": _summary(survey, mapping),
        "lines": sum(one.lines for one in survey.lines),
        "rows_if_plain": _rows_if_plain(found, detected) if unfixed else 0,
        "columns": [{"name": name, "role": role_of(name, mapping, extra)} for name in columns],
        "other_columns": [n for n in layout.selectable_columns if n not in columns],
        "roles": ROLE_NAMES.items(),
        "rows": [_preview_row(row) for row in survey.first],
        "suspects": [_preview_row(row) for row in survey.suspects],
        "has_lines": layout.kind in {FileKind.CSV, FileKind.TEXT, FileKind.JSONL},
        "has_header": layout.kind not in HEADERLESS,
        "quotings": QUOTINGS,
        "quoting_choice": read.quoting or "auto",
        "separators": SEPARATORS if layout.kind in {FileKind.CSV, FileKind.TEXT} else [],
        "separator_choice": separator_choice(layout),
        "encodings": apps_files.ENCODINGS.items(),
        "splits": [value for value in Split.values if value],
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
    layouts = [layout]
    if not problem:
        try:
            layouts = check_files(found, ImportOptions("", mapping, form.read))
        except FormatError as error:
            problem = str(error)
    return _Detected(form, layouts, mapping, problem)


def _usable_mapping(
    chosen: ColumnMapping | None, guess: ColumnMapping, layout: Layout
) -> ColumnMapping:
    """Return the chosen mapping; the guess if its columns are gone, as when the header changes."""
    if chosen is None:
        return guess
    if set(chosen.columns) <= {*layout.columns, *layout.paths}:
        return chosen
    return replace(guess, keep_unlabelled=chosen.keep_unlabelled)


def _columns(layout: Layout, mapping: ColumnMapping, added: str) -> list[str]:
    """Return the columns of the table: all up to a limit, and each nested field that is used."""
    columns = [name for name in mapping.columns if name not in layout.columns]
    columns += layout.columns[:MAX_COLUMNS_SHOWN]
    wanted = [*mapping.columns, *([added] if added in layout.selectable_columns else [])]
    return columns + [name for name in wanted if name not in columns]


def _rows_if_plain(found: Upload, detected: _Detected) -> int:
    """Return how many rows there are if quotes are plain text; 0 if that brings no more."""
    read = replace(detected.form.read, quoting=Quoting.NONE)
    options = ImportOptions("", detected.mapping, read)
    try:
        plain = count_rows(found, options, check_files(found, options))
    except FormatError:
        return 0
    return plain.rows_to_import


def _preview_row(row: SurveyedRow) -> dict[str, Any]:
    cells = [
        {"text": cell[:CELL_CHARACTERS], "cut": len(cell) > CELL_CHARACTERS, "warning": warning}
        for cell, warning in zip(row.cells, row.warnings, strict=True)
    ]
    return {"line": row.line, "file": row.file, "cells": cells, "rejection": row.rejection}


def _summary(survey: Survey, mapping: ColumnMapping) -> str:
    """Return what the rows are, and where text and label come from."""
    labels, unlabelled = len(survey.labels), f"{survey.unlabelled:,} unlabelled"
    counts = [f"{labels:,} label{'' if labels == 1 else 's'}"] if mapping.label else []
    counts += [unlabelled] if survey.unlabelled else []
    counts += [f"{survey.rejected:,} left out"]
    label = f", label from “{mapping.label}”" if mapping.label else ""
    if mapping.second_label:
        label = f", label joined as “{mapping.label}{LABEL_SEPARATOR}{mapping.second_label}”"
    read = f"({', '.join(counts)})." if survey.complete else ""
    return f"{read} Text from “{mapping.text}”{label}."
