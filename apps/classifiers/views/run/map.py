"""Looking at the rows: where they lie, and which are on both sides."""

from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation.row_results import SIDES, RowResults
from apps.classifiers.evaluation.row_texts import load_texts
from apps.classifiers.models import Run
from apps.classifiers.views.run.run_page import get_run, load_row_results, run_page

HOVER_TEXT = 160  # characters


@require_safe
def row_map(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "improve", "map")
    if run := context["run"]:
        context |= _placed(run)
    return render(request, "classifiers/evaluation/map.html", context)


def _placed(run: Run) -> dict[str, Any]:
    """Describe the projection, shown before the points load so that nothing jumps."""
    try:
        explained = load_row_results(run).map.explained
    except NoRowResults:
        return {}
    if not len(explained):
        return {"how": "umap"}
    return {"how": "pca", "shown": float(explained.sum())}


@require_safe
def map_points(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The points with what is known of each, column by column."""
    run = get_run(request, pk, number)
    try:
        known = load_row_results(run)
    except NoRowResults as error:
        return JsonResponse({"detail": str(error)}, status=409)
    return JsonResponse(
        {
            "labels": [entry["label"] for entry in run.per_class],
            **_columns(run, known),
        }
    )


def _columns(run: Run, known: RowResults) -> dict[str, Any]:
    count = len(known.map.side)
    truth = np.full(count, -1)
    predicted = np.zeros(count, dtype=np.int64)
    texts = [""] * count
    for number, name in enumerate(SIDES):
        mine = np.flatnonzero(known.map.side == number)
        if not len(mine):
            continue
        side, rows = known.side(name), known.map.row[mine]
        truth[mine] = side.truth[rows]
        predicted[mine] = side.predicted[rows]
        found = load_texts(run, side, rows.tolist(), longest=HOVER_TEXT)
        for place, text in zip(mine.tolist(), found, strict=True):
            texts[place] = text
    return {
        "x": [round(value, 4) for value in known.map.points[:, 0].tolist()],
        "y": [round(value, 4) for value in known.map.points[:, 1].tolist()],
        "side": known.map.side.tolist(),
        "truth": truth.tolist(),
        "predicted": predicted.tolist(),
        "text": texts,
    }


@require_safe
def duplicates(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "improve", "duplicates")
    run: Run | None = context["run"]
    if run is not None and not run.leaks:
        context["problem"] = "This version has no duplicate check. Train again to create it."
    return render(request, "classifiers/evaluation/duplicates.html", context)
