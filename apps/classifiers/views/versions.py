"""Runs side by side on the same test rows, and which of them answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.classifiers import comparing, services
from apps.classifiers.evidence import Evidence, NoEvidence
from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.row_texts import texts_of
from apps.classifiers.views.shared import (
    get_run,
    load_evidence,
    number_of,
    run_page,
)

RUNS_SHOWN = 50
ROWS_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Changed:
    """A test row that two runs label differently."""

    text: str
    truth: str
    old: str
    new: str

    @property
    def verdict(self) -> str:
        if self.new == self.truth:
            return "now right"
        return "now wrong" if self.old == self.truth else "wrong otherwise"


@require_safe
def versions(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "versions")
    classifier: Classifier = context["classifier"]
    ready = list(classifier.runs.filter(status=Status.READY).for_lists()[:RUNS_SHOWN])
    context |= {"runs": ready, "pinned": classifier.pinned}
    if len(ready) > 1:
        context |= _compared(
            classifier,
            ready,
            number_of(request.GET.get("old")),
            number_of(request.GET.get("new")),
        )
    return render(request, "classifiers/versions.html", context)


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
        return chosen | {"problem": "Choose two different runs."}
    before.classifier = newest.classifier = classifier
    try:
        return chosen | compare(before, newest)
    except NoEvidence as error:
        return chosen | {"problem": str(error)}


def compare(old: Run, new: Run) -> dict[str, Any]:
    """Two runs on the test rows that both were judged on, and neither was trained on.

    Raises:
        NoEvidence: nothing is known of the rows of one of them.
    """
    a, b = load_evidence(old), load_evidence(new)
    shared, at_a, at_b = np.intersect1d(a.test.key, b.test.key, return_indices=True)
    if not len(shared):
        return {"paired": None}
    labels_a = [entry["label"] for entry in old.per_class]
    labels_b = [entry["label"] for entry in new.per_class]
    # A row may have been relabelled in between: what counts is the label it has now.
    truth = [labels_b[code] for code in b.test.truth[at_b].tolist()]
    said_a = [labels_a[code] for code in a.test.predicted[at_a].tolist()]
    said_b = [labels_b[code] for code in b.test.predicted[at_b].tolist()]
    right_a = np.asarray([said == label for said, label in zip(said_a, truth, strict=True)])
    right_b = np.asarray([said == label for said, label in zip(said_b, truth, strict=True)])
    different = [place for place, said in enumerate(said_a) if said != said_b[place]]
    different.sort(key=lambda place: (bool(right_b[place]), not right_a[place]))
    shown = different[:ROWS_SHOWN]
    texts = texts_of(new, b.test, at_b[shown].tolist())
    return {
        "paired": comparing.paired(right_a, right_b),
        "different": len(different),
        "unpaired": len(b.test) - len(shared),
        "relabelled": _relabelled(a, b, labels_a, labels_b, at_a, at_b),
        "rows": [
            Changed(text, truth[place], said_a[place], said_b[place])
            for place, text in zip(shown, texts, strict=True)
        ],
    }


def _relabelled(
    a: Evidence, b: Evidence, labels_a: list[str], labels_b: list[str], at_a: Any, at_b: Any
) -> int:
    pairs = zip(a.test.truth[at_a].tolist(), b.test.truth[at_b].tolist(), strict=True)
    return sum(labels_a[old] != labels_b[new] for old, new in pairs)


@require_POST
def promote(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    run = get_run(request, pk, number)
    services.promote(run)
    messages.success(request, f"Run {run.number} answers from now on.")
    return redirect("classifiers:versions", pk)
