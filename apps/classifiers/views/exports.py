"""A classifier to take along, and one that somebody brought."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from apps.classifiers.errors import BadArtefact, BadFile, NoRowResults
from apps.classifiers.evaluation.row_texts import labelled
from apps.classifiers.models import Run
from apps.classifiers.prediction import predictor_file
from apps.classifiers.transfer import convert, create_imported, script
from apps.classifiers.transfer import exports as transfer_exports
from apps.classifiers.transfer.convert_run import queue_conversion
from apps.classifiers.transfer.imports import check_size
from apps.classifiers.views.run.run_page import get_run, load_row_results, run_page, signed_in_user
from apps.core.quotas import limited
from apps.runtime.async_db import stream_from_thread
from apps.servers.services import NoServer


@require_safe
def exports(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "ship", "export")
    run: Run | None = context["run"]
    if run is not None:
        path = reverse("api-1:predict", kwargs={"pk": pk})
        context |= {
            "snippet": script.snippet(_base_url(run)),
            "predict_url": request.build_absolute_uri(path),
            **_context(run),
        }
        if context["waiting"]:
            queue_conversion(run)
    return render(request, "classifiers/transfer/exports.html", context)


@require_safe
def export_list(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The files alone; the page asks again until a worker has written those it does not have."""
    run = get_run(request, pk, number)
    context = {"classifier": run.classifier, "run": run, **_context(run)}
    return render(request, "classifiers/transfer/_export_list.html", context)


@require_safe
def export(request: HttpRequest, pk: int, number: int, form: str) -> HttpResponseBase:
    if form not in transfer_exports.FORMS:
        raise Http404
    run = get_run(request, pk, number)
    try:
        return export_response(run, form)
    except BadArtefact as error:
        messages.error(request, str(error))
    except FileNotFoundError:
        messages.info(request, f"The .{form} file is being prepared. Try again in a moment.")
    return redirect("classifiers:exports", pk)


def _context(run: Run) -> dict[str, Any]:
    """Show which files a worker has written and which it has to."""
    folder = Path(settings.CLASSIFIERS_DIR)
    written = convert.all_written(folder, run.artefact)
    try:
        predictor_file.load(folder, run.artefact)
    except BadArtefact as error:
        return {"problem": str(error), "written": written, "waiting": False}
    return {"written": written, "waiting": not written, "forms": convert.available()}


def export_response(run: Run, form: str) -> HttpResponseBase:
    """Raises:
    BadArtefact: the classifier's files are not here.
    FileNotFoundError: a worker has not written this one yet.
    """
    folder = Path(settings.CLASSIFIERS_DIR)
    stored = predictor_file.load(folder, run.artefact)
    card = transfer_exports.card_of(run, stored)
    name = run.classifier.name
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:80]
    headers = {
        "Content-Type": transfer_exports.CONTENT_TYPES.get(form, "application/octet-stream"),
        "Content-Disposition": f'attachment; filename="{stem or "run"}-{run.number}.{form}"',
        "X-Content-Type-Options": "nosniff",
    }
    match form:
        case "json":
            return HttpResponse(transfer_exports.as_json(card, stored), headers=headers)
        case "npz":
            return HttpResponse(transfer_exports.as_npz(card, stored), headers=headers)
    converted = convert.read(folder, run.artefact)
    if form in converted:
        return HttpResponse(converted[form], headers=headers)
    if form in convert.FORMS:
        raise Http404(f"The package {form} is not installed here.")
    pieces = transfer_exports.as_zip(card, stored, converted, _tests(run), _base_url(run))
    return StreamingHttpResponse(stream_from_thread(pieces), headers=headers)


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def import_file(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "classifiers/transfer/import.html")
    sent = request.FILES.get("file")
    problem = "Choose a file first."
    if sent is not None:
        try:
            check_size(sent.size or 0)
            made, warnings = create_imported.import_classifier(signed_in_user(request), sent.read())
        except (BadFile, NoServer) as error:
            problem = str(error)
        else:
            for warning in warnings:
                messages.warning(request, warning)
            return redirect("classifiers:detail", made.pk)
    return render(request, "classifiers/transfer/import.html", {"problem": problem}, status=422)


def _tests(run: Run) -> Iterator[list[tuple[str, str]]]:
    try:
        return labelled(run, load_row_results(run).test)
    except NoRowResults:
        return iter(())


def _base_url(run: Run) -> str:
    server = run.classifier.server
    return server.base_url if server is not None else "http://127.0.0.1:8080/v1"
