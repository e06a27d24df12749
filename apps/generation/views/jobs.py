"""The list of jobs, the page of a job, and its rows."""

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from apps.batch import services as batches
from apps.batch.models import ACTIVE, Item
from apps.datasets.models import Dataset
from apps.datasets.services import is_trained_on
from apps.generation import services
from apps.generation.exports import row_fields, to_dataset
from apps.generation.models import Job
from apps.generation.recipe import versions
from apps.generation.recipe.spec import Spec
from apps.generation.recipe.starters import STARTERS
from apps.generation.review.job_status import job_status
from apps.generation.review.reasons import label_of
from apps.generation.review.restore import can_restore, unparsed_reply
from apps.generation.row_search.row_filter import FILTERS, RowFilter
from apps.generation.rows import preview
from apps.generation.rows.conversations import Sides, last_reply, messages_of
from apps.generation.views.row_review import thresholds

JOBS_A_PAGE = 20
DATASETS_SHOWN = 200
ROWS_A_PAGE = 25
FIELDS_SHOWN = 4


def jobs_of(request: HttpRequest) -> Any:
    return Job.objects.owned_by(request.user).select_related("batch", "batch__server", "version")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    page = Paginator(jobs_of(request), JOBS_A_PAGE).get_page(request.GET.get("page"))
    counts = batches.count_rows_by_status([job.batch for job in page.object_list])
    shown = [(job, counts[job.batch_id]) for job in page.object_list]
    running = any(job.batch.status in ACTIVE for job in page.object_list)
    context: dict[str, Any] = {"page": page, "jobs": shown, "running": running}
    if request.headers.get("HX-Request") and not request.headers.get("HX-Boosted"):
        return render(request, "generation/_job_list.html", context)
    context |= {"starters": STARTERS, "saved": versions.saved_recipes_of(request.user)}
    return render(request, "generation/index.html", context)


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    spec = found.spec
    context = {
        **job_status(found),
        **_table(request, found),
        "spec": spec,
        "large": services.is_large(found.batch),
        "names": spec.recipe.field_names,
        "labels": spec.recipe.label_candidates,
        "sides": Sides.of(spec.recipe),
        "recipe_json": preview.format_json(found.recipe),
        "near_step": thresholds.step_of(spec.filters.near),
        "meaning_step": thresholds.step_of(spec.filters.meaning),
        "real": to_dataset.real_datasets(found.owner),
        "datasets": Dataset.objects.owned_by(request.user).only("pk", "name")[:DATASETS_SHOWN],
        "target": (target := target_dataset(request, found)),
        "trains": can_train(found, target),
    }
    return render(request, "generation/job.html", context)


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the live part of the page, polled while the job runs; tells the table of new rows."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    context = job_status(found)
    answer = render(request, "generation/_progress.html", context)
    if request.GET.get("seen") != str(context["progress"].finished) or not context["live"]:
        answer["HX-Trigger"] = "rows-changed"
    if not context["live"]:
        answer["HX-Trigger"] = "rows-changed, job-ended"
    return answer


@require_safe
def throughput(request: HttpRequest, pk: int) -> HttpResponse:
    """Slots used and rows a second over time, for the chart."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    points = batches.throughput_of(found.batch_id).points
    server = found.batch.server
    slots = server.slots_of(found.batch.model) if server is not None else 0
    return JsonResponse({"points": [point.to_json() for point in points], "slots": slots})


@require_safe
def rows(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    return render(request, "generation/rows/_rows.html", _table(request, found))


def _table(request: HttpRequest, found: Job) -> dict[str, Any]:
    """Build a page of rows, of one state or reason if chosen; of an active job the newest first."""
    chosen = RowFilter.of(found, request.GET)
    page = Paginator(chosen.rows(found), ROWS_A_PAGE).get_page(request.GET.get("page"))
    spec = found.spec
    names = spec.recipe.table_fields[:FIELDS_SHOWN]
    shown = [(item, _cells(spec, item, names)) for item in page.object_list]
    return {
        "job": found,
        "page": page,
        "table": shown,
        "fields": names,
        "status": chosen.name,
        "code": chosen.code,
        "code_label": label_of(chosen.code) if chosen.code else "",
        "filters": FILTERS.items(),
    }


def _cells(spec: Spec, item: Item, names: Sequence[str]) -> list[str] | None:
    """The fields of a row; of one with a reason what the model wrote, as one text."""
    cells = row_fields.cells(spec, item, names)
    if not item.reason:
        return cells
    texts = [cell for cell in cells or [] if cell]
    return [" · ".join([*texts, *filter(None, [unparsed_reply(spec, item)])])]


@require_safe
def row(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    items = batches.rows_of(found.batch_id)
    item = get_object_or_404(items, index=index)
    spec = found.spec
    context = {
        "job": found,
        "item": item,
        "messages_sent": messages_of(spec, item),
        "reply": last_reply(spec, item),
        "output": preview.format_json(_as_written(spec, item)),
        "edited": preview.format_json(item.edited),
        "before": items.filter(index__lt=index).order_by("-index").only("index").first(),
        "after": items.filter(index__gt=index).order_by("index").only("index").first(),
        "restorable": can_restore(spec, item),
        "tells_cached": batches.reports_cached_tokens(found.batch),
    }
    return render(request, "generation/rows/row.html", context)


def _as_written(spec: Spec, item: Item) -> Any:
    """The row without a person's changes, older ones with all that was judged."""
    if item.output is None:
        return None
    return row_fields.full_row(spec, item) if item.edited is None else item.output


def target_dataset(request: HttpRequest, found: Job) -> Dataset | None:
    """The dataset that the rows are meant for, if it is still there."""
    mine = Dataset.objects.owned_by(request.user)
    return mine.filter(pk=found.for_dataset_id).first() if found.for_dataset_id else None


def can_train(found: Job, target: Dataset | None) -> bool:
    """True if the classifier of the job can be trained with its rows."""
    key = found.for_classifier
    return target is not None and key is not None and is_trained_on(target, key)
