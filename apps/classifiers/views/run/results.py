"""The results of one version: figures, confused labels, calibration; a training under way."""

from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation import confusion_matrix
from apps.classifiers.evaluation.statistics import mcnemar
from apps.classifiers.evaluation.statistics.calibration_error import merge_bins
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.views.run.matrix import matrix_of
from apps.classifiers.views.run.run_page import get_classifier, load_run_predictions, parse_number
from apps.datasets.services import LabelCount, label_variants

VARIANTS = 10
PAIRS = 5  # with an example and their buttons
MORE_PAIRS = 200
WEAKEST = 5


@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    classifier = get_classifier(request, pk)
    number = parse_number(request.GET.get("run"))
    context = _runs(classifier, number)
    run: Run | None = context["run"]
    if run is not None and run.is_ready:
        context |= _results(run)
        context["variants"] = _variants(classifier, run) if number is None else []
    return render(request, "classifiers/results/page.html", context)


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The training under way; the page asks until it has ended, and then for the results."""
    context = _runs(get_classifier(request, pk), None)
    context["ended"] = context["training"] is None
    return render(request, "classifiers/results/_training.html", context)


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
    return JsonResponse(
        {
            "labels": [entry["label"] for entry in run.per_class],
            "support": [entry["support"] for entry in run.per_class],
            "cells": cells,
            "reliability": merge_bins(run.reliability),
            "curve": run.learning_curve,
        }
    )


def _runs(classifier: Classifier, number: int | None) -> dict[str, Any]:
    """The version to show, and what is newer than it.

    It is the one asked for, else the live one; without one the newest run, whatever became of it.
    """
    runs = classifier.runs.select_related("task")
    newest = runs.for_lists().first()
    live = runs.filter(pk=classifier.current_id).first() if classifier.current_id else None
    if number is not None:
        run: Run | None = get_object_or_404(runs, number=number)
    else:
        run = live or runs.filter(status=Status.READY).first() or newest
    context: dict[str, Any] = {
        "classifier": classifier,
        "tab": "results",
        "run": run,
        "live": live,
        "older": number is not None and (live is None or live.number != number),
        "training": newest if newest is not None and newest.is_active else None,
    }
    if number is None and newest is not None and run is not None and newest.number > run.number:
        if newest.is_ready:
            context |= {"newer": newest, "newer_paired": _paired(classifier, run, newest)}
        elif not newest.is_active:
            context["failed"] = newest
    return context


def _paired(classifier: Classifier, live: Run, newer: Run) -> mcnemar.PairedResult | None:
    """Compare both versions on the test rows they share; None where nothing can be compared."""
    live.classifier = newer.classifier = classifier
    try:
        rows = mcnemar.shared_test_rows(load_run_predictions(live), load_run_predictions(newer))
    except NoRowResults:
        return None
    return mcnemar.compare_paired(rows.old_correct, rows.new_correct) if len(rows) else None


def _results(run: Run) -> dict[str, Any]:
    labels = [entry["label"] for entry in run.per_class]
    counts = np.asarray(run.confusion, dtype=np.int64) if run.confusion else None
    pairs = confusion_matrix.all_pairs(counts) if counts is not None else []
    examples = {(pair["label"], pair["predicted"]): pair["texts"] for pair in run.confused_pairs}
    shown = [
        {
            "truth": labels[pair.truth],
            "predicted": labels[pair.predicted],
            "numbers": f"truth={pair.truth}&predicted={pair.predicted}",
            "count": pair.count,
            "support": pair.support,
            "text": next(iter(examples.get((labels[pair.truth], labels[pair.predicted]), [])), ""),
        }
        for pair in pairs[: PAIRS + MORE_PAIRS]
    ]
    measured = [entry for entry in run.per_class if entry["f1"] is not None]
    return {
        "pairs": shown[:PAIRS],
        "more_pairs": shown[PAIRS:],
        "pair_count": len(pairs),
        "mistakes": sum(pair.count for pair in pairs),
        "weakest": sorted(measured, key=lambda entry: entry["f1"])[:WEAKEST],
        "matrix": matrix_of(run, whole=False) if pairs else None,
    }


def _variants(classifier: Classifier, run: Run) -> list[list[LabelCount]]:
    """Labels it learnt to tell apart that differ only in case or spacing, and still do."""
    if classifier.dataset is None:
        return []
    trained = {entry["label"] for entry in run.per_class}
    counts = classifier.dataset.label_counts
    return label_variants({label: n for label, n in counts.items() if label in trained})[:VARIANTS]
