from typing import Any

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
from apps.classifiers.views.run_page import get_classifier, parse_number
from apps.datasets.models import Dataset
from apps.datasets.services import LabelCount, label_variants

RUNS_SHOWN = 30
VARIANTS = 10


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    newest = Run.objects.filter(classifier=OuterRef("pk")).order_by("-number")
    classifiers = (
        Classifier.objects.owned_by(request.user)
        .select_related("dataset", "current")
        .annotate(status=Subquery(newest.values("status")[:1]))
        .defer(*(f"current__{name}" for name in LARGE_FIELDS))
    )
    context = {
        "classifiers": classifiers,
        "has_datasets": Dataset.objects.owned_by(request.user).exists(),
    }
    return render(request, "classifiers/index.html", context)


@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    classifier = get_classifier(request, pk)
    context = _run_context(request, classifier, parse_number(request.GET.get("run")))
    return render(request, "classifiers/training/overview.html", context)


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The newest run as it is now, and the list of all; the page asks until the run has ended."""
    return render(
        request,
        "classifiers/training/_run_update.html",
        _run_context(request, get_classifier(request, pk), None),
    )


@require_safe
def charts(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The numbers behind a run's charts. The matrix comes sparse: most of it is empty."""
    run = get_object_or_404(get_classifier(request, pk).runs, number=number)
    cells = [
        [truth, predicted, count]
        for truth, row in enumerate(run.confusion)
        for predicted, count in enumerate(row)
        if count
    ]
    labels = [entry["label"] for entry in run.per_class]
    support = [entry["support"] for entry in run.per_class]
    return JsonResponse(
        {
            "labels": labels,
            "support": support,
            "cells": cells,
            "reliability": run.reliability,
            "curve": run.learning_curve,
        }
    )


def _run_context(
    request: HttpRequest, classifier: Classifier, number: int | None
) -> dict[str, Any]:
    """The run to show: the one asked for; else the newest while it has no numbers to show, and then
    the one that answers."""
    runs = classifier.runs
    run = newest = get_object_or_404(runs, number=number) if number else runs.first()
    answers = classifier.current_id
    if number is None and run is not None and run.is_ready and answers not in {None, run.pk}:
        run = runs.filter(pk=answers).first() or run
    return {
        "classifier": classifier,
        "tab": "overview",
        "run": run,
        "waiting": newest if newest != run else None,
        "variants": _variants(classifier, run) if number is None else [],
        "runs": runs.for_lists()[:RUNS_SHOWN],
        "older": number is not None,
        "predict_url": request.build_absolute_uri(
            reverse("api-1:predict", kwargs={"pk": classifier.pk})
        ),
    }


def _variants(classifier: Classifier, run: Run | None) -> list[list[LabelCount]]:
    """Labels it learnt to tell apart that differ only in case or spacing, and still do."""
    if run is None or not run.is_ready or classifier.dataset is None:
        return []
    trained = {entry["label"] for entry in run.per_class}
    counts = classifier.dataset.label_counts
    return label_variants({label: n for label, n in counts.items() if label in trained})[:VARIANTS]
