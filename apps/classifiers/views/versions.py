"""Runs side by side on the same test rows, and which of them answers."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.classifiers import services
from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation.row_texts import load_texts
from apps.classifiers.evaluation.statistics import mcnemar
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.views.run.run_page import (
    get_classifier,
    get_run,
    load_run_predictions,
    parse_number,
    run_page,
)

RUNS_SHOWN = 50
ROWS_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A test row that two runs label differently."""

    text: str
    truth: str
    old: str
    new: str

    @property
    def verdict(self) -> str:
        if self.new == self.truth:
            return "fixed"
        return "newly wrong" if self.old == self.truth else "still wrong"


@require_safe
def versions(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "ship", "versions")
    classifier: Classifier = context["classifier"]
    runs = list(classifier.runs.for_lists().select_related("task")[:RUNS_SHOWN])
    ready = [run for run in runs if run.status == Status.READY]
    context |= {"all_runs": runs, "runs": ready, "pinned": classifier.pinned}
    if ready:
        newest = ready[0]
        waits = newest.pk != classifier.current_id
        context["held_back"] = waits and bool(newest.fit.get("held_back"))
    if len(ready) > 1:
        context |= _compared(
            classifier,
            ready,
            parse_number(request.GET.get("old")),
            parse_number(request.GET.get("new")),
        )
    return render(request, "classifiers/training/versions.html", context)


def _compared(
    classifier: Classifier, ready: list[Run], old: int | None, new: int | None
) -> dict[str, Any]:
    """The two runs asked for; else the one that answers against the newest, or the one before."""
    by_number = {run.number: run for run in ready}
    newest = by_number.get(new or 0) or ready[0]
    others = [run for run in ready if run.pk != newest.pk]
    current = next((run for run in others if run.pk == classifier.current_id), others[0])
    before = by_number.get(old or 0) or current
    chosen: dict[str, Any] = {"old": before, "new": newest}
    if before.pk == newest.pk:
        return chosen | {"problem": "Choose two different versions."}
    before.classifier = newest.classifier = classifier
    try:
        return chosen | compare(before, newest)
    except NoRowResults as error:
        return chosen | {"problem": str(error)}


def compare(old: Run, new: Run) -> dict[str, Any]:
    """Compare two runs on the test rows that both were tested on and that neither was trained on.

    Raises:
        NoRowResults: nothing is known of the rows of one of them.
    """
    now = load_run_predictions(new)
    rows = mcnemar.shared_test_rows(load_run_predictions(old), now)
    if not len(rows):
        return {"paired": None}
    right_a, right_b = rows.old_correct, rows.new_correct
    pairs = enumerate(zip(rows.old_predicted, rows.new_predicted, strict=True))
    different = [place for place, (before, after) in pairs if before != after]
    different.sort(key=lambda place: (bool(right_b[place]), not right_a[place]))
    shown = different[:ROWS_SHOWN]
    texts = load_texts(new, now.rows, rows.at_new[shown].tolist())
    return {
        "paired": mcnemar.compare_paired(right_a, right_b),
        "different": len(different),
        "unpaired": len(now.rows) - len(rows),
        "relabelled": rows.relabelled,
        "rows": [
            ChangedRow(
                text, rows.truth[place], rows.old_predicted[place], rows.new_predicted[place]
            )
            for place, text in zip(shown, texts, strict=True)
        ],
    }


@require_POST
def pin(request: HttpRequest, pk: int) -> HttpResponse:
    """Pin or unpin the live version."""
    services.set_pinned(get_classifier(request, pk), request.POST.get("pinned") == "1")
    return redirect("classifiers:versions", pk)


@require_POST
def promote(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    run = get_run(request, pk, number)
    services.promote(run)
    messages.success(request, f"Version {run.number} is now live.")
    return redirect("classifiers:versions", pk)
