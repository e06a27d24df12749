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
from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation.row_results import PredictedRows, RowResults
from apps.classifiers.evaluation.thresholds import decision, outcomes, score_limit, tuning
from apps.classifiers.evaluation.thresholds.decision import Thresholds
from apps.classifiers.models import Run
from apps.classifiers.views.run_page import get_run, load_row_results, run_page

MOST_ROWS = 5_000  # drawn at random: enough for a third digit
KEPT_SHARE_STEP = 0.005


class ThresholdsForm(forms.Form):
    unsure = forms.FloatField(min_value=0, max_value=1)
    kept = forms.FloatField(min_value=decision.MIN_KEPT_SHARE, max_value=1)


@require_http_methods(["GET", "HEAD", "POST"])
def thresholds(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "decide")
    run: Run | None = context["run"]
    if run is None:
        return render(request, "classifiers/prediction/thresholds.html", context)
    if request.method == "POST":
        return _save(request, run, context)
    return render(request, "classifiers/prediction/thresholds.html", context | _page_data(run))


def _save(request: HttpRequest, run: Run, context: dict[str, Any]) -> HttpResponse:
    form = ThresholdsForm(request.POST)
    if not form.is_valid():
        return render(
            request,
            "classifiers/prediction/thresholds.html",
            context | _page_data(run) | {"problem": "Enter two values: 0 to 1, and 0.8 to 1."},
            status=422,
        )
    try:
        services.set_thresholds(run, **form.cleaned_data)
    except NoRowResults as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Thresholds saved. They apply to every prediction from now on.")
    url = reverse("classifiers:thresholds", args=[context["classifier"].pk])
    return redirect(f"{url}?run={run.number}" if request.GET.get("run") else url)


def _page_data(run: Run) -> dict[str, Any]:
    try:
        known = load_row_results(run)
    except NoRowResults as error:
        return {"problem": str(error)}
    chosen, labels = Thresholds.read(run.thresholds), len(run.per_class)
    tuning, telling = _out_of_scope_halves(known)
    found: dict[str, Any] = {
        "gates": chosen,
        # Chosen by rows of cross-validation, confirmed on the test rows, which chose nothing.
        "passed": _passed(known.train, known.out_of_scope, tuning, chosen),
        "confirmed": _passed(known.test, known.out_of_scope, telling, chosen),
        # Of n labels one has at least 1 / n, but for a favoured one.
        "least_unsure": 0.0 if run.options.get("balanced") else floor(100 / labels) / 100,
        "out_of_scope": len(known.out_of_scope),
        "same_out_of_scope": bool(len(known.out_of_scope)) and bool((tuning & telling).any()),
    }
    if len(known.out_of_scope):
        found["auroc"] = outcomes.auroc(known.test.familiarity, known.out_of_scope.familiarity)
        found["auroc_confidence"] = outcomes.auroc(
            known.test.confidence, known.out_of_scope.confidence
        )
    return found


def _out_of_scope_halves(known: RowResults) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The out-of-scope rows to choose by, and those to tell by: all for both where they are few."""
    chosen = tuning.tuning_rows(len(known.out_of_scope))
    return (chosen, ~chosen) if chosen.any() else (~chosen, ~chosen)


def _passed(
    rows: PredictedRows, out_of_scope: PredictedRows, which: NDArray[np.bool_], chosen: Thresholds
) -> outcomes.ThresholdOutcome:
    return outcomes.apply_thresholds(
        rows.confidence,
        rows.familiarity,
        rows.correct,
        chosen,
        out_of_scope_confidence=out_of_scope.confidence[which],
        out_of_scope_score=out_of_scope.familiarity[which],
    )


@require_safe
def threshold_rows(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Return the scores that the page needs while someone drags a slider."""
    try:
        known = load_row_results(get_run(request, pk, number))
    except NoRowResults as error:
        return JsonResponse({"detail": str(error)}, status=409)
    steps = np.arange(decision.MIN_KEPT_SHARE, 1 - KEPT_SHARE_STEP / 2, KEPT_SHARE_STEP)
    tuning, _ = _out_of_scope_halves(known)
    return JsonResponse(
        {
            "rows": _rows(known.train, np.arange(len(known.train))),
            "strange": _rows(known.out_of_scope, np.flatnonzero(tuning)),
            # The last step lets everything through.
            "limits": [
                *(
                    [
                        round(float(kept), 4),
                        score_limit.score_limit(known.train.familiarity, float(kept)),
                    ]
                    for kept in steps
                ),
                [1.0, None],
            ],
        }
    )


def _rows(side: PredictedRows, keep: NDArray[np.int64]) -> list[list[float]]:
    """[confidence, score of the second gate, right?] of each row."""
    if len(keep) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MOST_ROWS, replace=False))
    columns = (side.confidence[keep], side.familiarity[keep], side.correct[keep])
    return [
        [round(confidence, 4), round(score, 4), int(right)]
        for confidence, score, right in zip(*(c.tolist() for c in columns), strict=True)
    ]
