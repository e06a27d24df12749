"""A classifier to take along, and one that somebody brought."""

from pathlib import Path

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.classifiers import exporting, predictor, services
from apps.classifiers.evidence import NoEvidence
from apps.classifiers.importing import MOST_BYTES, BadFile
from apps.classifiers.models import Run
from apps.classifiers.predictor import BadArtefact
from apps.classifiers.row_texts import GONE, texts_of
from apps.classifiers.views.shared import get_run, load_evidence, owner_of, run_page
from apps.llm.services import NoServer


@require_safe
def exports(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "export")
    run: Run | None = context["run"]
    if run is not None:
        context["snippet"] = exporting.snippet(_base_url(run))
    return render(request, "classifiers/exports.html", context)


@require_safe
def export(request: HttpRequest, pk: int, number: int, form: str) -> HttpResponse:
    if form not in exporting.FORMS:
        raise Http404
    run = get_run(request, pk, number)
    try:
        data = export_bytes(run, form)
    except BadArtefact as error:
        messages.error(request, str(error))
        return redirect("classifiers:exports", pk)
    return export_response(run, form, data)


def export_bytes(run: Run, form: str) -> bytes:
    """Raises:
    BadArtefact: the classifier's files are not here.
    """
    stored = predictor.load(Path(settings.CLASSIFIERS_DIR), run.artefact)
    card = exporting.card_of(run, stored)
    match form:
        case "json":
            return exporting.as_json(card, stored)
        case "npz":
            return exporting.as_npz(card, stored)
        case "skops":
            return exporting.as_skops(stored)
        case "onnx":
            return exporting.as_onnx(stored)
        case _:
            return exporting.as_zip(card, stored, _tests(run), _base_url(run))


def export_response(run: Run, form: str, data: bytes) -> HttpResponse:
    name = run.classifier.name
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:80]
    return HttpResponse(
        data,
        content_type=exporting.CONTENT_TYPES.get(form, "application/octet-stream"),
        headers={
            "Content-Disposition": f'attachment; filename="{stem or "run"}-{run.number}.{form}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def import_file(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "classifiers/import.html")
    sent = request.FILES.get("file")
    problem = "Choose a file first."
    if sent is not None:
        try:
            if (sent.size or 0) > MOST_BYTES:
                raise BadFile(f"The file is larger than {MOST_BYTES // 1024**2} MB.")
            made = services.import_classifier(owner_of(request), sent.read())
        except (BadFile, NoServer) as error:
            problem = str(error)
        else:
            return redirect("classifiers:detail", made.pk)
    return render(request, "classifiers/import.html", {"problem": problem}, status=422)


def _tests(run: Run) -> list[tuple[str, str]]:
    """The test rows with their labels, as far as they are still what they were."""
    try:
        side = load_evidence(run).test
    except NoEvidence:
        return []
    labels = [entry["label"] for entry in run.per_class]
    texts = texts_of(run, side, list(range(len(side))), longest=10**7)
    truth = side.truth.tolist()
    return [(text, labels[code]) for text, code in zip(texts, truth, strict=True) if text != GONE]


def _base_url(run: Run) -> str:
    server = run.classifier.server
    return server.base_url if server is not None else "http://127.0.0.1:8080/v1"
