"""Files to be classified, and their downloads."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.classifiers import services
from apps.classifiers.errors import NoColumn, NotReady, TooLarge
from apps.classifiers.models import LARGE_FIELDS, Classifier, FilePrediction
from apps.classifiers.prediction import file_queue
from apps.classifiers.views.run.run_page import run_page
from apps.core.quotas import limited
from apps.files import FormatError
from apps.runtime.async_db import stream_from_thread

SHOWN = 50
PIECE_BYTES = 256 * 1024
REFUSED = (
    NotReady,
    FormatError,
    TooLarge,
    NoColumn,
)


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def files(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "ship", "files")
    classifier: Classifier = context["classifier"]
    status = 200
    if request.method == "POST":
        sent = request.FILES.get("file")
        if sent is None:
            context["problem"] = "Choose a file first."
        else:
            try:
                file_queue.queue_file(
                    classifier,
                    sent,
                    column=request.POST.get("column", ""),
                    form=request.POST.get("form", "csv"),
                )
            except REFUSED as error:
                context["problem"] = str(error)
            else:
                return redirect("classifiers:files", classifier.pk)
        status = 422
    context |= _files(classifier)
    return render(request, "classifiers/prediction/files.html", context, status=status)


@require_safe
def file_list(request: HttpRequest, pk: int) -> HttpResponse:
    """The list alone; the page asks again while one of them is being worked."""
    context = run_page(request, pk, "ship", "files")
    context |= _files(context["classifier"])
    return render(request, "classifiers/prediction/_file_list.html", context)


@require_safe
def download(request: HttpRequest, pk: int, file: int) -> HttpResponseBase:
    return download_response(_get(request, pk, file))


def download_response(found: FilePrediction) -> StreamingHttpResponse:
    """The file, sent as it is read: it may be larger than memory.

    Raises:
        Http404: it is not ready, or its file is on another machine.
    """
    path = file_queue.result_path(found)
    if not found.is_ready or not path.exists():
        raise Http404
    stem = found.file_name.rsplit(".", 1)[0]
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem)[:80]
    name = f"{safe or 'file'}-labelled.{found.file_format}"
    return StreamingHttpResponse(
        stream_from_thread(_read(path)),
        headers={
            "Content-Type": "text/csv; charset=utf-8"
            if found.file_format == "csv"
            else "application/jsonl",
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(path.stat().st_size),
            "X-Content-Type-Options": "nosniff",
        },
    )


def _read(path: Path) -> Generator[bytes]:
    with path.open("rb") as opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece


@require_POST
def cancel_file(request: HttpRequest, pk: int, file: int) -> HttpResponse:
    services.cancel(_get(request, pk, file))
    return redirect("classifiers:files", pk)


@require_POST
def remove_file(request: HttpRequest, pk: int, file: int) -> HttpResponse:
    found = _get(request, pk, file)
    services.delete_file(found)
    messages.success(request, f"“{found.file_name}” and its labels deleted.")
    return redirect("classifiers:files", pk)


def _files(classifier: Classifier) -> dict[str, Any]:
    large = [f"run__{name}" for name in LARGE_FIELDS]
    files = list(classifier.files.select_related("run", "task").defer(*large)[:SHOWN])
    return {"files": files, "working": any(file.is_active for file in files)}


def _get(request: HttpRequest, pk: int, file: int) -> FilePrediction:
    mine = Classifier.objects.owned_by(request.user)
    return get_object_or_404(FilePrediction, pk=file, classifier__in=mine, classifier=pk)
