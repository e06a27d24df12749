"""When it should rather not answer: two gates, and what they cost."""

from typing import Any

import numpy as np
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from apps.classifiers import gates, services
from apps.classifiers.evidence import Evidence, NoEvidence, Side
from apps.classifiers.gates import Gates
from apps.classifiers.models import Run
from apps.classifiers.views.shared import get_run, load_evidence, run_page

MOST_ROWS = 5_000  # of the test set, drawn at random: enough for a third digit
KEPT_STEP = 0.005


class GatesForm(forms.Form):
    unsure = forms.FloatField(min_value=0, max_value=1)
    kept = forms.FloatField(min_value=gates.KEPT_AT_LEAST, max_value=1)


@require_http_methods(["GET", "HEAD", "POST"])
def thresholds(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "thresholds")
    run: Run | None = context["run"]
    if run is None:
        return render(request, "classifiers/thresholds.html", context)
    if request.method == "POST":
        return _save(request, run, context)
    return render(request, "classifiers/thresholds.html", context | _shown(run))


def _save(request: HttpRequest, run: Run, context: dict[str, Any]) -> HttpResponse:
    form = GatesForm(request.POST)
    if not form.is_valid():
        return render(
            request,
            "classifiers/thresholds.html",
            context | _shown(run) | {"problem": "Give two shares: 0 to 1, and 0.8 to 1."},
            status=422,
        )
    try:
        services.set_gates(run, **form.cleaned_data)
    except NoEvidence as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Saved: every prediction from now on goes through these gates.")
    url = reverse("classifiers:thresholds", args=[context["classifier"].pk])
    return redirect(f"{url}?run={run.number}" if request.GET.get("run") else url)


def _shown(run: Run) -> dict[str, Any]:
    try:
        known = load_evidence(run)
    except NoEvidence as error:
        return {"problem": str(error)}
    chosen = Gates.read(run.gates)
    found: dict[str, Any] = {"gates": chosen, "passed": _passed(known, chosen)}
    if len(known.strange):
        found["area_logit"] = gates.area(known.test.max_logit, known.strange.max_logit)
        found["area_confidence"] = gates.area(known.test.confidence, known.strange.confidence)
    return found


def _passed(known: Evidence, chosen: Gates) -> gates.Passed:
    return gates.passed(
        known.test.confidence,
        known.test.max_logit,
        known.test.right,
        chosen,
        strange_confidence=known.strange.confidence,
        strange_max_logit=known.strange.max_logit,
    )


@require_safe
def gate_rows(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """What the page needs to work the two gates by itself, while somebody drags a slider."""
    try:
        known = load_evidence(get_run(request, pk, number))
    except NoEvidence as error:
        return JsonResponse({"detail": str(error)}, status=409)
    steps = np.arange(gates.KEPT_AT_LEAST, 1 - KEPT_STEP / 2, KEPT_STEP)
    limits = np.quantile(known.train.max_logit, 1 - steps)
    return JsonResponse(
        {
            "rows": _rows(known.test),
            "strange": _rows(known.strange),
            # The last step lets everything through.
            "limits": [
                *([round(float(k), 4), float(m)] for k, m in zip(steps, limits, strict=True)),
                [1.0, None],
            ],
        }
    )


def _rows(side: Side) -> list[list[float]]:
    """[confidence, largest logit, right?] of each row."""
    keep = np.arange(len(side))
    if len(keep) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(len(keep), MOST_ROWS, replace=False))
    columns = (side.confidence[keep], side.max_logit[keep], side.right[keep])
    return [
        [round(confidence, 4), round(logit, 4), int(right)]
        for confidence, logit, right in zip(*(c.tolist() for c in columns), strict=True)
    ]
