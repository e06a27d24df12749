"""Edits of rows on the page: labels, splits, additions, removals, undo."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST

from apps.datasets import near_duplicates, services
from apps.datasets.models import Revision
from apps.datasets.views.datasets import filters_of
from apps.datasets.views.shared import back, mine, numbers, who
from apps.files import ExampleRow

MAX_ADDED = 1_000
NEAR_SHOWN = 50


@require_POST
def label(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """Label one row; return its line of the table."""
    dataset = mine(request, pk)
    example = get_object_or_404(dataset.examples.select_related("dataset"), index=index)
    context = {"dataset": dataset, "example": example, "splits": dataset.split_counts}
    try:
        context["example"] = services.relabel(
            example, request.POST.get("label", ""), by=who(request)
        )
    except ValueError as error:
        return render(
            request, "datasets/rows/_row.html", context | {"error": str(error)}, status=422
        )
    answer = render(request, "datasets/rows/_row.html", context)
    answer["HX-Trigger"] = "dataset-changed"
    return answer


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the selected rows, or all that match the filter."""
    dataset = mine(request, pk)
    chosen = numbers(request.POST.getlist("row"))
    action = request.POST.get("action", "")
    revision: services.Changed = None
    try:
        if "matching" in request.POST:
            value = request.POST.get({"label": "to_label", "split": "to_split"}.get(action, ""), "")
            filters = filters_of(QueryDict(request.POST["matching"]))
            revision = services.change_matching(dataset, filters, action, value, by=who(request))
        elif not chosen:
            raise ValueError("Select at least one row.")
        elif action == "label":
            label = request.POST.get("to_label", "")
            revision = services.relabel_rows(dataset, chosen, label, by=who(request))
        elif action == "split":
            split = request.POST.get("to_split", "")
            revision = services.set_split(dataset, chosen, split, by=who(request))
        elif action == "delete":
            revision = services.delete_rows(dataset, chosen, by=who(request))
        else:
            raise ValueError("Choose an action.")
    except ValueError as error:
        messages.error(request, str(error))
    else:
        _report_change(request, revision)
    return back(request, dataset)


@require_POST
def add(request: HttpRequest, pk: int) -> HttpResponse:
    """Add a text, or one per line, with a label and a split."""
    dataset = mine(request, pk)
    text = request.POST.get("text", "").replace("\r\n", "\n").replace("\0", "")
    each_line = "lines" in request.POST
    texts = [line for line in text.split("\n") if line.strip()] if each_line else [text]
    split = request.POST.get("split", "")
    rows = [
        ExampleRow(text, request.POST.get("label", ""), split or None, "added here")
        for text in texts[:MAX_ADDED]
    ]
    try:
        revision, rejected = services.add_rows(dataset, rows, by=who(request))
    except ValueError as error:
        messages.error(request, str(error))
        return back(request, dataset)
    if rejected:
        messages.error(request, f"Text {rejected[0].row} not added. {rejected[0].reason}")
    if len(texts) > MAX_ADDED:
        messages.error(request, f"Only the first {MAX_ADDED:,} lines were added.")
    if revision is not None:
        _report_change(request, revision)
    return back(request, dataset)


@require_POST
def merge(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a label, or merge several into one."""
    dataset = mine(request, pk)
    labels = [label for label in request.POST.getlist("label") if label in dataset.label_counts]
    try:
        if not labels:
            raise ValueError("Tick the labels first.")
        into = request.POST.get("into", "")
        _report_change(request, services.merge_labels(dataset, labels, into, by=who(request)))
    except ValueError as error:
        messages.error(request, str(error))
    return back(request, dataset)


@require_POST
def deduplicate(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = mine(request, pk)
    try:
        _report_change(request, services.delete_duplicates(dataset, by=who(request)))
    except ValueError as error:
        messages.error(request, str(error))
    return back(request, dataset)


@require_POST
def split(request: HttpRequest, pk: int) -> HttpResponse:
    """Hold out a fifth as the test split."""
    dataset = mine(request, pk)
    try:
        _report_change(request, services.make_split(dataset, by=who(request)))
    except ValueError as error:
        messages.error(request, str(error))
    return back(request, dataset)


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = mine(request, pk)
    try:
        revision = services.undo(dataset, by=who(request))
    except ValueError as error:
        messages.error(request, str(error))
        return back(request, dataset)
    if revision is None:
        messages.info(request, "Nothing to undo.")
    elif isinstance(revision, Revision):
        messages.success(request, f"{revision.what}.")
    return back(request, dataset)


@require_http_methods(["GET", "HEAD", "POST"])
def near_copies(request: HttpRequest, pk: int) -> HttpResponse:
    """Show near-duplicates side by side; POST searches for them."""
    dataset = mine(request, pk)
    if request.method == "POST":
        near_duplicates.start_search(dataset)
        return back(request, dataset)
    start = next(iter(numbers([request.GET.get("from", "")])), 0)
    near = near_duplicates.search_status(dataset)
    found = int(near.get("found", 0))
    context = {
        "dataset": dataset,
        "pairs": near_duplicates.list_pairs(dataset, after=start, limit=NEAR_SHOWN),
        "start": start,
        "next": start + NEAR_SHOWN if start + NEAR_SHOWN < found else None,
        "previous": max(0, start - NEAR_SHOWN) if start else None,
        "near": near,
        "near_available": near_duplicates.is_search_available(),
    }
    return render(request, "datasets/rows/near_duplicates.html", context)


def _report_change(request: HttpRequest, revision: services.Changed) -> None:
    if revision is None:
        messages.info(request, "Nothing to change.")
    elif isinstance(revision, Revision):
        messages.success(request, f"{revision.what}. You can undo this.")
    # Else a worker makes it, and the page shows how far it is.
