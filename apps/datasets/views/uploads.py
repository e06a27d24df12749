"""From a file to a dataset: choose, check the columns, import, watch."""

from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps import files as apps_files
from apps.core.api import get_owned
from apps.core.quotas import limited
from apps.datasets import services
from apps.datasets.imports import import_queue, importing, uploads
from apps.datasets.imports.options import ImportOptions
from apps.datasets.models import Split, Upload, UploadState
from apps.datasets.rows.edit_steps import row_count
from apps.datasets.views.import_form import ImportForm, read_form
from apps.datasets.views.import_preview import preview_context
from apps.datasets.views.shared import go, is_fragment, who
from apps.files import (
    FormatError,
)


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def new(request: HttpRequest) -> HttpResponse:
    """Choose files. They are stored as an upload until their columns are confirmed."""
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
    """Show the first rows under the columns as guessed or chosen; POST imports all rows."""
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
    form = read_form(request.GET)
    if form.mapping is None and found.import_options:  # an import that failed: as it was tried
        options = ImportOptions.from_json(found.import_options)
        form = ImportForm(options.mapping, options.read, options.name)
    template = (
        "datasets/imports/_columns.html"
        if is_fragment(request)
        else "datasets/imports/columns.html"
    )
    return render(request, template, preview_context(found, form) | {"error": found.error})


def _import(request: HttpRequest, found: Upload) -> HttpResponse:
    form = read_form(request.POST)
    name = request.POST.get("name", "").strip() or Path(found.files[0]["name"]).stem
    _save_splits(request, found)
    try:
        if form.mapping is None:
            raise FormatError("Choose a column as the text.")
        options = ImportOptions(name, form.mapping, form.read)
        if import_queue.is_small(found, options.read):
            dataset = importing.import_upload(found, options)
            messages.success(request, f"{row_count(dataset.rows)} imported.")
            return redirect("datasets:detail", dataset.pk)
        import_queue.enqueue_import(found, options)
    except (FormatError, services.NothingUsable) as error:
        context = preview_context(found, form) | {"error": str(error)}
        return render(request, "datasets/imports/columns.html", context, status=422)
    return redirect("datasets:upload", found.pk)


def _save_splits(request: HttpRequest, found: Upload) -> None:
    """Save the split of each of several files."""
    for place, part in enumerate(found.parts):
        split = request.POST.get(f"split_of_{place}", part["split"])
        part["split"] = split if split in Split.values else ""
    found.save(update_fields=["parts"])


@require_safe
def progress(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the progress of an import; redirect once it ended."""
    found = get_owned(Upload, request, pk)
    if found.is_active:
        return render(request, "datasets/imports/_progress.html", {"upload": found})
    if found.state == UploadState.DONE and found.dataset is not None:
        messages.success(request, f"{row_count(found.dataset.rows)} imported.")
        return go(request, reverse("datasets:detail", args=[found.dataset.pk]))
    return go(request, reverse("datasets:upload", args=[found.pk]))


@require_POST
def discard(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Remove an upload; cancel and undo an import in progress."""
    found = get_owned(Upload, request, pk)
    if found.is_active:
        importing.cancel_import(found)
        return redirect("datasets:index")
    services.remove_upload(found)
    return redirect("datasets:new")
