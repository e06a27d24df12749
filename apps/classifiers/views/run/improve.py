"""Which rows to review next. Labelling itself is the datasets' page: keyboard, undo, history."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.classifiers.models import ReviewReason, Run
from apps.classifiers.views.run.run_page import run_page
from apps.datasets.models import Dataset, QueueItem
from apps.datasets.services import QueueEntry, create_queue

SHOWN = 50
WORDS = {
    ReviewReason.LABEL_ERROR: "Likely label error: the current label has {score:.0%}",
    ReviewReason.UNLABELLED: "Unlabelled: top 2 labels {score:.0%} apart",
    ReviewReason.UNCERTAIN: "Uncertain: top 2 labels {score:.0%} apart",
}


@require_http_methods(["GET", "HEAD", "POST"])
def improve(request: HttpRequest, pk: int) -> HttpResponse:
    context = run_page(request, pk, "improve", "queue")
    run: Run | None = context["run"]
    if run is None:
        return render(request, "classifiers/evaluation/improve.html", context)
    chosen = request.GET.get("reason") or request.POST.get("reason") or ""
    dataset: Dataset | None = context["classifier"].dataset
    seen = _seen(dataset)
    whole = [entry for entry in run.review_queue if entry["index"] not in seen]
    queue = [entry for entry in whole if chosen in {"", entry["reason"]}]
    if request.method == "POST" and dataset is not None and queue:
        made = create_queue(
            dataset, name=_name(run, chosen), items=[_entry(entry) for entry in queue]
        )
        if made.left_out:
            messages.info(request, f"{made.left_out:,} rows skipped (test rows or deleted).")
        return redirect(f"{reverse('datasets:label', args=[dataset.pk])}?queue={made.pk}")
    counts = [
        {
            "reason": reason.value,
            "label": reason.label,
            "count": sum(entry["reason"] == reason for entry in whole),
        }
        for reason in ReviewReason
    ]
    context |= {
        "counts": [entry for entry in counts if entry["count"]],
        "chosen": chosen,
        "rows": queue[:SHOWN],
        "total": len(queue),
        "whole": len(whole),
        "reviewed": len(run.review_queue) - len(whole),
    }
    return render(request, "classifiers/evaluation/improve.html", context)


def _seen(dataset: Dataset | None) -> set[int]:
    """Rows a person has looked at in any queue of the dataset: not asked a second time."""
    looked_at = QueueItem.objects.filter(queue__dataset=dataset, seen=True)
    return set(looked_at.values_list("index", flat=True)) if dataset is not None else set()


def _name(run: Run, chosen: str) -> str:
    what = ReviewReason(chosen).label if chosen in ReviewReason.values else "rows to review"
    return f"{run.classifier.name}, run {run.number}: {what}"


def _entry(entry: dict[str, Any]) -> QueueEntry:
    words = WORDS[ReviewReason(entry["reason"])].format(score=entry["score"])
    return QueueEntry(entry["index"], words, tuple(entry["suggested"]))
