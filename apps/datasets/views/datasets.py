"""The list of datasets, and the page of one: its counts, its report, its rows."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import aget_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_POST, require_safe

from apps.datasets import near_duplicates, services
from apps.datasets.imports import uploads
from apps.datasets.models import Dataset, Split
from apps.datasets.rows import browsing, removal, reports
from apps.datasets.rows.browsing import Filters
from apps.datasets.rows.reports import Issue
from apps.datasets.views.shared import go, mine, who
from apps.files import CONTENT_TYPES

REJECTIONS_SHOWN = 100
REVISIONS_SHOWN = 200
SEARCH_LENGTH = 200


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    datasets = Dataset.objects.owned_by(request.user).defer("report", "notes", "split_counts")
    context = {"datasets": datasets, "imports": uploads.list_imports(who(request))}
    return render(request, "datasets/index.html", context)


@require_POST
def create_example(request: HttpRequest) -> HttpResponse:
    dataset = services.create_example_dataset(who(request))
    return redirect(f"{reverse('classifiers:new')}?dataset={dataset.pk}")


@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = mine(request, pk)
    context = rows_context(request, dataset) | summary_context(dataset)
    context |= {
        "rejections": dataset.rejections.all()[:REJECTIONS_SHOWN] if dataset.rejected_count else [],
        "rejections_shown": REJECTIONS_SHOWN,
    }
    return render(request, "datasets/detail.html", context)


@require_safe
def summary(request: HttpRequest, pk: int) -> HttpResponse:
    """Show counts, labels and report again after a label changed in the table."""
    dataset = mine(request, pk)
    context = summary_context(dataset) | {"filters": filters_of(request.GET), "oob": True}
    return render(request, "datasets/_summary.html", context)


@require_safe
def examples(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "datasets/rows/_rows.html", rows_context(request, mine(request, pk)))


@require_safe
def history(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = mine(request, pk)
    revisions = dataset.revisions.filter(complete=True).select_related("by")[:REVISIONS_SHOWN]
    context = {
        "dataset": dataset,
        "revisions": revisions,
        "undoable": services.last_undoable(dataset),
        "shown": REVISIONS_SHOWN,
    }
    return render(request, "datasets/history.html", context)


@require_safe
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the progress of a change of many rows; reload the page once it ended.

    The address holds the version shown before: only a later one means that rows changed.
    """
    dataset = mine(request, pk)
    before = request.GET.get("version", "")
    found = services.pending_change(dataset)
    if found is None:
        dataset.refresh_from_db(fields=["version"])  # it may have ended since it was read
        if before == str(dataset.version):
            messages.info(request, "No rows were changed.")
        elif before:
            messages.success(request, "The rows were changed.")
        return go(request, reverse("datasets:detail", args=[dataset.pk]))
    context = {"dataset": dataset, "change": found, "version": before}
    return render(request, "datasets/_pending_change.html", context)


@require_safe
async def export(request: HttpRequest, pk: int, form: str) -> StreamingHttpResponse:
    dataset = await aget_object_or_404(Dataset.objects.owned_by(await request.auser()), pk=pk)
    return export_response(dataset, form)


@require_safe
async def rejected(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Download the rejected rows as CSV."""
    dataset = await aget_object_or_404(Dataset.objects.owned_by(await request.auser()), pk=pk)
    response = StreamingHttpResponse(
        services.export_rejections(dataset), content_type=CONTENT_TYPES["csv"]
    )
    name = f"{dataset.name}, rejected rows.csv"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = mine(request, pk)
    removal.remove_dataset(dataset)
    messages.success(request, f"“{dataset.name}” deleted. Classifiers trained on it are kept.")
    return go(request, reverse("datasets:index"))


def export_response(dataset: Dataset, form: str) -> StreamingHttpResponse:
    """Stream the whole dataset as a download.

    Raises:
        Http404: there is no such format.
    """
    if form not in CONTENT_TYPES:
        raise Http404
    response = StreamingHttpResponse(
        services.export(dataset, form=form), content_type=CONTENT_TYPES[form]
    )
    name = f"{dataset.name}.{form}"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


# --- Contexts of the fragments --------------------------------------------------


def filters_of(get: QueryDict) -> Filters:
    """Read the filters of an address; unknown values are ignored."""
    label = get.get("label") or ("" if get.get("unlabelled") else None)
    split = get.get("split") or None
    split = "" if split == "none" else split
    issue = get.get("issue") or ""
    return Filters(
        label=label,
        split=split if split in Split.values else None,
        issue=Issue(issue) if issue in reports.WORDS else None,
        search=(get.get("q") or "").replace("\0", "").strip()[:SEARCH_LENGTH],
    )


def rows_context(request: HttpRequest, dataset: Dataset) -> dict[str, Any]:
    filters = filters_of(request.GET)
    found = browsing.page(
        dataset,
        filters,
        after=request.GET.get("after", ""),
        before=request.GET.get("before", ""),
    )
    return {
        "dataset": dataset,
        "filters": filters,
        "page": found,
        "labels": dataset.labels,
        "splits": [value for value in Split.values if value],
        "issues": [(issue.value, words) for issue, words in reports.WORDS.items()],
    }


def summary_context(dataset: Dataset) -> dict[str, Any]:
    counts = dataset.label_counts
    found = services.report(dataset)
    return {
        "dataset": dataset,
        "label_counts": [(label, counts[label]) for label in dataset.labels],
        "most": max(counts.values(), default=0),
        "report": found,
        "nothing_found": bool(counts) and reports.is_clean(found),
        "undoable": services.last_undoable(dataset),
        "change": services.pending_change(dataset),
        "version": dataset.version,
        "near": near_duplicates.search_status(dataset),
        "near_available": near_duplicates.is_search_available(),
        "near_empty": reports.NEAR_EMPTY,
    }
