"""When it should rather not answer: two gates, and what they cost."""

from math import floor
from typing import Any

import numpy as np
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from numpy.typing import NDArray

from apps.classifiers import services
from apps.classifiers.evaluation import gates
from apps.classifiers.evaluation.evidence import Evidence, NoEvidence, Side
from apps.classifiers.evaluation.gates import Gates
from apps.classifiers.models import Run
from apps.classifiers.views.shared import get_run, load_evidence, run_page

MOST_ROWS = 5_000  # drawn at random: enough for a third digit
KEPT_STEP = 0.005


class GatesForm(forms.Form):
    unsure = forms.FloatField(min_value=0, max_value=1)
    kept = forms.FloatField(min_value=gates.KEPT_AT_LEAST, max_value=1)


@require_http_methods(["GET", "HEAD", "POST"])
def thresholds(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "thresholds")
    run: Run | None = context["run"]
    if run is None:
        return render(request, "classifiers/prediction/thresholds.html", context)
    if request.method == "POST":
        return _save(request, run, context)
    return render(request, "classifiers/prediction/thresholds.html", context | _shown(run))


def _save(request: HttpRequest, run: Run, context: dict[str, Any]) -> HttpResponse:
    form = GatesForm(request.POST)
    if not form.is_valid():
        return render(
            request,
            "classifiers/prediction/thresholds.html",
            context | _shown(run) | {"problem": "Enter two values: 0 to 1, and 0.8 to 1."},
            status=422,
        )
    try:
        services.set_gates(run, **form.cleaned_data)
    except NoEvidence as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Thresholds saved. They apply to every prediction from now on.")
    url = reverse("classifiers:thresholds", args=[context["classifier"].pk])
    return redirect(f"{url}?run={run.number}" if request.GET.get("run") else url)


def _shown(run: Run) -> dict[str, Any]:
    try:
        known = load_evidence(run)
    except NoEvidence as error:
        return {"problem": str(error)}
    chosen, labels = Gates.read(run.gates), len(run.per_class)
    tuning, telling = _strangers(known)
    found: dict[str, Any] = {
        "gates": chosen,
        # Chosen by rows of cross-validation, confirmed on the test rows, which chose nothing.
        "passed": _passed(known.train, known.strange, tuning, chosen),
        "confirmed": _passed(known.test, known.strange, telling, chosen),
        # Of n labels one has at least 1 / n, but for a favoured one.
        "least_unsure": 0.0 if run.options.get("balanced") else floor(100 / labels) / 100,
        "strangers": len(known.strange),
        "same_strangers": bool(len(known.strange)) and bool((tuning & telling).any()),
    }
    if len(known.strange):
        found["area"] = gates.area(known.test.familiar, known.strange.familiar)
        found["area_confidence"] = gates.area(known.test.confidence, known.strange.confidence)
    return found


def _strangers(known: Evidence) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The out-of-scope rows to choose by, and those to tell by: all for both where they are few."""
    chosen = gates.choosing(len(known.strange))
    return (chosen, ~chosen) if chosen.any() else (~chosen, ~chosen)


def _passed(rows: Side, strange: Side, which: NDArray[np.bool_], chosen: Gates) -> gates.Passed:
    return gates.passed(
        rows.confidence,
        rows.familiar,
        rows.right,
        chosen,
        strange_confidence=strange.confidence[which],
        strange_score=strange.familiar[which],
    )


@require_safe
def gate_rows(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """What the page needs to work the two gates by itself, while somebody drags a slider."""
    try:
        known = load_evidence(get_run(request, pk, number))
    except NoEvidence as error:
        return JsonResponse({"detail": str(error)}, status=409)
    steps = np.arange(gates.KEPT_AT_LEAST, 1 - KEPT_STEP / 2, KEPT_STEP)
    tuning, _ = _strangers(known)
    return JsonResponse(
        {
            "rows": _rows(known.train, np.arange(len(known.train))),
            "strange": _rows(known.strange, np.flatnonzero(tuning)),
            # The last step lets everything through.
            "limits": [
                *(
                    [round(float(kept), 4), gates.threshold(known.train.familiar, float(kept))]
                    for kept in steps
                ),
                [1.0, None],
            ],
        }
    )


def _rows(side: Side, keep: NDArray[np.int64]) -> list[list[float]]:
    """[confidence, score of the second gate, right?] of each row."""
    if len(keep) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MOST_ROWS, replace=False))
    columns = (side.confidence[keep], side.familiar[keep], side.right[keep])
    return [
        [round(confidence, 4), round(score, 4), int(right)]
        for confidence, score, right in zip(*(c.tolist() for c in columns), strict=True)
    ]
