"""From a file to a dataset: choose, check the columns, import, watch."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps import files as apps_files
from apps.core.api import get_owned
from apps.core.quotas import limited
from apps.datasets import services, tasks
from apps.datasets.imports import importing, uploads
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.models import Split, Upload, UploadState
from apps.datasets.views.shared import go, is_fragment, who
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


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def new(request: HttpRequest) -> HttpResponse:
    """Choose files. They are kept as an upload until their columns are confirmed."""
    context: dict[str, Any] = {
        "limit": settings.UPLOAD_LIMIT_BYTES,
        "max_files": uploads.MAX_FILES,
    }
    if request.method != "POST":
        return render(request, "datasets/imports/new.html", context)
    files = [file for file in request.FILES.getlist("file") if isinstance(file, UploadedFile)]
    try:
        if not files:
            raise FormatError("Choose a file first.")
        upload = services.store_upload(owner=who(request), files=files)
        try:
            _check_readable(upload)
        except FormatError:
            services.remove_upload(upload)
            raise
    except (FormatError, services.UploadTooLarge) as error:
        template = (
            "datasets/imports/_upload.html" if is_fragment(request) else "datasets/imports/new.html"
        )
        return render(request, template, context | {"error": str(error)}, status=422)
    return go(request, reverse("datasets:upload", args=[upload.pk]))


def _check_readable(upload: Upload) -> None:
    for place, file in enumerate(upload.files):
        try:
            apps_files.detect_layout(upload.path_of(place), name=file["name"])
        except FormatError as error:
            several = len(upload.files) > 1
            raise FormatError(f"{file['name']}: {error}" if several else str(error)) from error


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def upload(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The first rows under the columns as guessed or chosen; POST imports them all."""
    found = get_owned(Upload, request, pk)
    if found.state == UploadState.DONE:
        if found.dataset is None:
            raise Http404
        return go(request, reverse("datasets:detail", args=[found.dataset.pk]))
    if found.is_active:
        return render(request, "datasets/imports/progress.html", {"upload": found})
    if not found.path.is_file():
        raise Http404
    if request.method == "POST":
        return _import(request, found)
    chosen = _chosen(request.GET)
    if chosen.mapping is None and found.import_options:  # an import that failed: as it was tried
        options = ImportOptions.from_json(found.import_options)
        chosen = _Chosen(options.mapping, options.read, options.name)
    template = (
        "datasets/imports/_columns.html"
        if is_fragment(request)
        else "datasets/imports/columns.html"
    )
    return render(request, template, _preview(found, chosen) | {"error": found.error})


def _import(request: HttpRequest, found: Upload) -> HttpResponse:
    chosen = _chosen(request.POST)
    name = request.POST.get("name", "").strip() or Path(found.files[0]["name"]).stem
    _keep_splits(request, found)
    try:
        if chosen.mapping is None:
            raise FormatError("Choose the text column.")
        options = ImportOptions(name, chosen.mapping, chosen.read)
        if importing.is_small(found, options.read):
            dataset = importing.import_upload(found, options)
            messages.success(request, f"{dataset.rows:,} rows imported.")
            return redirect("datasets:detail", dataset.pk)
        if importing.enqueue_import(found, options):
            tasks.wake_import(found)
    except (FormatError, services.NothingUsable) as error:
        context = _preview(found, chosen) | {"error": str(error)}
        return render(request, "datasets/imports/columns.html", context, status=422)
    return redirect("datasets:upload", found.pk)


def _keep_splits(request: HttpRequest, found: Upload) -> None:
    """Which split each of several files is."""
    for place, part in enumerate(found.parts):
        split = request.POST.get(f"split_of_{place}", part["split"])
        part["split"] = split if split in Split.values else ""
    found.save(update_fields=["parts"])


@require_safe
def progress(request: HttpRequest, pk: UUID) -> HttpResponse:
    """How far an import is; elsewhere once it is over."""
    found = get_owned(Upload, request, pk)
    if found.is_active:
        return render(request, "datasets/imports/_progress.html", {"upload": found})
    if found.state == UploadState.DONE and found.dataset is not None:
        messages.success(request, f"{found.dataset.rows:,} rows imported.")
        return go(request, reverse("datasets:detail", args=[found.dataset.pk]))
    return go(request, reverse("datasets:upload", args=[found.pk]))


@require_POST
def discard(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Removes an upload; an import that is under way is cancelled and undone."""
    found = get_owned(Upload, request, pk)
    if found.is_active:
        importing.cancel_import(found)
        return redirect("datasets:index")
    services.remove_upload(found)
    return redirect("datasets:new")


# --- The preview --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Chosen:
    mapping: ColumnMapping | None
    read: ReadOptions
    name: str = ""


def _chosen(data: QueryDict) -> _Chosen:
    """What a person chose in the form; nothing on the first visit."""
    if "text" not in data:
        return _Chosen(None, ReadOptions())
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
    return _Chosen(mapping, read, str(data.get("name") or ""))


def _preview(found: Upload, chosen: _Chosen) -> dict[str, Any]:
    first = found.files[0]
    try:
        layout = apps_files.detect_layout(found.path, name=first["name"], options=chosen.read)
        guess = apps_files.detect_mapping(found.path, layout)
        problem = ""
    except FormatError as error:  # of what a person said: as it was found, and why not
        chosen = _Chosen(None, ReadOptions())
        layout = apps_files.detect_layout(found.path, name=first["name"])
        guess = apps_files.detect_mapping(found.path, layout)
        problem = str(error)
    mapping = chosen.mapping
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
            check_files(found, ImportOptions("", mapping, chosen.read))
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
        "read_options": chosen.read,
        "problem": problem,
        "name": chosen.name or Path(first["name"]).stem,
        "small": not problem and importing.is_small(found, chosen.read),
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
        "separator_choice": _separator_choice(chosen.read),
        "encodings": apps_files.ENCODINGS.items(),
        "joined_by": apps_files.LABEL_SEPARATOR,
        "splits": [value for value in Split.values if value],
        "rejections": [] if problem else _sample_rejections(found, layout, mapping),
    }


def _is_suspect(cell: str, layout: Layout) -> bool:
    """Whether a cell may hold other rows, or a quote that does not close."""
    if layout.quoting is Quoting.NONE:
        return False
    lines = cell.splitlines()
    return cell.startswith('"') or any(layout.separator in line for line in lines[1:])


def _suspects(found: Upload, layout: Layout, numbers: list[int]) -> list[dict[str, Any]]:
    """The first rows that a stray quote may have made, with their cells."""
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
