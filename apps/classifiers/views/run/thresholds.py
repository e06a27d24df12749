"""Decide: which texts get no label, and what that costs."""

from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
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
from apps.classifiers.views.run.run_page import get_run, load_row_results, run_page

PAGE = "classifiers/prediction/thresholds.html"
MOST_ROWS = 20_000  # drawn at random: enough for a third digit
FEWEST_TEST_ROWS = 100  # below, the training rows in cross-validation say more
LABELS_SHOWN = 8
KEPT_SHARE_STEP = 0.005
STEPS = np.round(np.arange(decision.MIN_KEPT_SHARE, 1 + KEPT_SHARE_STEP / 2, KEPT_SHARE_STEP), 4)


@dataclass(frozen=True, slots=True)
class Basis:
    """The rows that the page measures on; none of them chose the out-of-scope threshold."""

    rows: PredictedRows
    out_of_scope: PredictedRows
    told: NDArray[np.bool_]
    """Which of the out-of-scope rows count."""
    is_test: bool


@dataclass(frozen=True, slots=True)
class Preset:
    """A usual out-of-scope threshold, with what it does to the measured rows."""

    name: str
    use: str
    kept: float
    caught: float | None
    lost: float


PRESETS = (
    ("Off", "no texts rejected", 1.0),
    ("Lenient", "few texts rejected", 0.99),
    ("Balanced", "with human review", 0.95),
    ("Strict", "fully automatic", 0.9),
)


class ThresholdsForm(forms.Form):
    unsure = forms.FloatField(min_value=0, max_value=1)
    kept = forms.FloatField(min_value=decision.MIN_KEPT_SHARE, max_value=1)


@require_http_methods(["GET", "HEAD", "POST"])
def thresholds(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "decide")
    run: Run | None = context["run"]
    if run is None:
        return render(request, PAGE, context)
    if request.method == "POST":
        return _save(request, run, context)
    return render(request, PAGE, context | _page_data(run))


def _save(request: HttpRequest, run: Run, context: dict[str, Any]) -> HttpResponse:
    form = ThresholdsForm(request.POST)
    by_label = _by_label(request.POST, [entry["label"] for entry in run.per_class])
    if not form.is_valid() or by_label is None:
        problem = "Enter thresholds from 0 to 1, and a share to keep of 0.8 to 1."
        page = context | _page_data(run) | {"problem": problem}
        return render(request, PAGE, page, status=422)
    try:
        services.set_thresholds(run, **form.cleaned_data, by_label=by_label)
    except NoRowResults as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Thresholds saved. They apply to every prediction from now on.")
    url = reverse("classifiers:thresholds", args=[context["classifier"].pk])
    return redirect(f"{url}?run={run.number}" if request.GET.get("run") else url)


def _by_label(sent: QueryDict, labels: list[str]) -> dict[str, float] | None:
    """Read label-3=0.9 for the fourth label; None if one of them is no share of a known label."""
    found: dict[str, float] = {}
    for name in sent:
        place = name.removeprefix("label-")
        if place == name:
            continue
        try:
            value = float(sent.get(name, ""))
        except ValueError:
            return None
        if not place.isdecimal() or int(place) >= len(labels) or not 0 <= value <= 1:
            return None
        found[labels[int(place)]] = value
    return found


def _page_data(run: Run) -> dict[str, Any]:
    try:
        known = load_row_results(run)
    except NoRowResults as error:
        return {"problem": str(error)}
    chosen = Thresholds.read(run.thresholds)
    labels = [entry["label"] for entry in run.per_class]
    basis = _basis(known)
    places = {label: place for place, label in enumerate(labels)}
    measured = outcomes.label_outcomes(basis.rows, labels, chosen)
    by_label = [{"place": places[one.label], "outcome": one} for one in measured]
    own = sum(one.own for one in measured)
    found: dict[str, Any] = {
        "gates": chosen,
        "measured": _passed(basis, labels, chosen),
        "basis": basis,
        "presets": _presets(known, basis),
        "labels": by_label[: max(LABELS_SHOWN, own)],
        "more_labels": by_label[max(LABELS_SHOWN, own) :],
        # Of n labels one has at least 1 / n, but for a favoured one.
        "least_unsure": 0.0 if run.options.get("balanced") else floor(100 / len(labels)) / 100,
        "out_of_scope": len(known.out_of_scope),
        "told": int(basis.told.sum()),
        "sampled": MOST_ROWS if len(basis.rows) > MOST_ROWS else 0,
    }
    if len(known.out_of_scope):
        found["auroc"] = outcomes.auroc(known.test.familiarity, known.out_of_scope.familiarity)
        found["auroc_confidence"] = outcomes.auroc(
            known.test.confidence, known.out_of_scope.confidence
        )
    return found


def _basis(known: RowResults) -> Basis:
    """The test rows, and the out-of-scope rows that did not choose; all where they are few."""
    chose = tuning.tuning_rows(len(known.out_of_scope))
    is_test = len(known.test) >= FEWEST_TEST_ROWS or not len(known.train)
    return Basis(known.test if is_test else known.train, known.out_of_scope, ~chose, is_test)


def _passed(basis: Basis, labels: list[str], chosen: Thresholds) -> outcomes.ThresholdOutcome:
    rows, out_of_scope = basis.rows, basis.out_of_scope
    least = np.asarray([chosen.min_confidence(label) for label in labels], dtype=np.float32)
    return outcomes.apply_thresholds(
        rows.confidence,
        rows.familiarity,
        rows.correct,
        chosen,
        least=least[rows.predicted],
        out_of_scope_confidence=out_of_scope.confidence[basis.told],
        out_of_scope_score=out_of_scope.familiarity[basis.told],
    )


def _presets(known: RowResults, basis: Basis) -> list[Preset]:
    """Apply each to the measured rows: the share it is named for may differ from theirs."""
    caught_of = basis.out_of_scope.familiarity[basis.told]
    if not len(caught_of):
        caught_of = basis.rows.familiarity[~basis.rows.correct]
    found: list[Preset] = []
    for name, use, kept in PRESETS:
        limit = score_limit.score_limit(known.train.familiarity, kept)
        caught = float((caught_of < limit).mean()) if len(caught_of) else None
        lost = float((basis.rows.familiarity < limit).mean()) if len(basis.rows) else 0.0
        if found and (found[-1].caught, found[-1].lost) == (caught, lost):
            use = f"on these rows the same as {found[-1].name}"
        found.append(Preset(name, use, kept, caught, lost))
    return found


@require_safe
def threshold_rows(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Return what the page needs while someone drags the point or a slider.

    Of each row: its label, the predicted label (-1: out of scope), its confidence, and from which
    step on it is not rejected as out of scope.
    """
    try:
        known = load_row_results(get_run(request, pk, number))
    except NoRowResults as error:
        return JsonResponse({"detail": str(error)}, status=409)
    basis = _basis(known)
    limits = np.asarray(
        [score_limit.score_limit(known.train.familiarity, float(kept)) for kept in STEPS]
    )
    every = np.arange(len(basis.rows))
    return JsonResponse(
        {
            "steps": STEPS.tolist(),
            "rows": _rows(basis.rows, every, limits),
            "out_of_scope": _rows(basis.out_of_scope, np.flatnonzero(basis.told), limits),
        }
    )


def _rows(side: PredictedRows, keep: NDArray[np.int64], limits: NDArray[Any]) -> list[list[float]]:
    if len(keep) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MOST_ROWS, replace=False))
    # The limits fall from step to step: how many of them are above a score is where it passes.
    passes = np.searchsorted(-limits, -side.familiarity[keep], side="left")
    columns = (side.truth[keep], side.predicted[keep], side.confidence[keep], passes)
    return [
        [truth, predicted, round(confidence, 4), step]
        for truth, predicted, confidence, step in zip(*(c.tolist() for c in columns), strict=True)
    ]
