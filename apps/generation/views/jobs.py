"""The list of jobs, and one job: how it stands, its rows, what people do with it."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import ACTIVE, Item
from apps.batch.services import wake_pump
from apps.datasets.models import Dataset
from apps.datasets.services import NothingUsable, is_trained_on
from apps.generation import services
from apps.generation.exports import row_fields, to_dataset
from apps.generation.exports.add_to_dataset import add_job_rows
from apps.generation.exports.data_card import data_card
from apps.generation.exports.downloads import export_response
from apps.generation.exports.formats import Format
from apps.generation.models import Job
from apps.generation.recipe import versions
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import MAX_ROWS
from apps.generation.recipe.spec import Spec
from apps.generation.recipe.starters import STARTERS
from apps.generation.review.job_status import job_status
from apps.generation.review.reasons import label_of
from apps.generation.review.restore import can_restore, unparsed_reply
from apps.generation.review.row_filter import FILTERS, RowFilter
from apps.generation.rows import preview
from apps.generation.rows.conversations import Sides, last_reply, messages_of
from apps.generation.views import thresholds

JOBS_A_PAGE = 20
DATASETS_SHOWN = 200
ROWS_A_PAGE = 25
FIELDS_SHOWN = 4

# name: (what is done, what is said afterwards)
ACTIONS = {
    "pause": (batches.pause_batch, "Paused. Running rows will finish."),
    "resume": (batches.resume_batch, "Job resumed."),
    "cancel": (batches.cancel_batch, "Job cancelled. Finished rows are kept."),
    "retry": (batches.retry_failed_rows, "Retrying failed rows."),
}


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


# --- One job ------------------------------------------------------------------


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
        "target": (target := _target(request, found)),
        "trains": _trains(found, target),
    }
    return render(request, "generation/job.html", context)


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Asked again and again while the job runs. Tells the table when there are new rows."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    context = job_status(found)
    answer = render(request, "generation/_progress.html", context)
    if request.GET.get("seen") != str(context["progress"].finished) or not context["live"]:
        answer["HX-Trigger"] = "rows-changed"
    if not context["live"]:
        answer["HX-Trigger"] = "rows-changed, job-ended"
    return answer


@require_safe
def course(request: HttpRequest, pk: int) -> HttpResponse:
    """Slots used and rows a second over time, for the chart."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    points = batches.throughput_of(found.batch_id).points
    server = found.batch.server
    slots = server.width(found.batch.model) if server is not None else 0
    return JsonResponse({"points": [point.to_json() for point in points], "slots": slots})


@require_safe
def rows(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    return render(request, "generation/rows/_rows.html", _table(request, found))


def _table(request: HttpRequest, found: Job) -> dict[str, Any]:
    """One page of rows, perhaps of one state or one reason; while it runs, the newest first."""
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
    said = [cell for cell in cells or [] if cell]
    return [" · ".join([*said, *filter(None, [unparsed_reply(spec, item)])])]


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


@require_POST
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Pause, resume, cancel, retry."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    if action not in ACTIONS:
        raise Http404
    do, said = ACTIONS[action]
    try:
        do(found.batch)
    except WrongState as error:
        messages.error(request, str(error))
    else:
        messages.success(request, said)
        wake_pump(found.batch.server_id)
    return redirect("generation:job", pk)


@require_POST
def add_rows(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    text = request.POST.get("rows", "")
    count = int(text) if text.isdecimal() and len(text) < 7 else 0
    if not 1 <= count <= MAX_ROWS:
        messages.error(request, f"Enter a number of rows from 1 to {MAX_ROWS:,}.")
        return redirect("generation:job", pk)
    try:
        batches.add_rows(found.batch, count)
    except WrongState as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{count:,} rows added to the job.")
        wake_pump(found.batch.server_id)
    return redirect("generation:job", pk)


@require_POST
def duplicate(request: HttpRequest, pk: int) -> HttpResponse:
    """The same job once more, with another seed."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    try:
        copy = services.duplicate(found)
    except (WrongState, RecipeError) as error:
        messages.error(request, str(error))
        return redirect("generation:job", pk)
    wake_pump(copy.batch.server_id)
    messages.success(request, "New job queued with the same recipe and a new seed.")
    return redirect("generation:job", copy.pk)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    services.delete(found)
    messages.success(request, f"“{found.name}” and its rows deleted. Its datasets are kept.")
    return redirect("generation:index")


@require_POST
def limits(request: HttpRequest, pk: int) -> HttpResponse:
    """Width, weight and daily budget of a job, also while it runs; empty takes a limit away."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    values: dict[str, int | None] = {}
    for name, largest in (("width", 1000), ("weight", 100), ("daily_tokens", 10**12)):
        text = request.POST.get(name, "").strip()
        if text and not (text.isascii() and text.isdecimal() and 1 <= int(text[:15]) <= largest):
            messages.error(request, f"Enter an integer from 1 to {largest:,}.")
            return redirect("generation:job", pk)
        values[name] = int(text) if text else None
    values["weight"] = values["weight"] or 1
    batches.change_batch(found.batch, **values)
    messages.success(request, "Limits saved. They apply within a second.")
    return redirect("generation:job", pk)


@require_safe
def export(request: HttpRequest, pk: int) -> HttpResponseBase:
    found = get_object_or_404(jobs_of(request), pk=pk)
    name = request.GET.get("format", "jsonl")
    if name not in set(Format):
        raise Http404
    try:
        return export_response(
            found,
            Format(name),
            user=request.GET.get("user"),
            assistant=request.GET.get("assistant"),
            numbered=request.GET.get("numbered") == "1",
        )
    except RecipeError as error:
        messages.error(request, str(error))
        return redirect("generation:job", pk)


@require_safe
def card(request: HttpRequest, pk: int) -> HttpResponse:
    """The data card as a file."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    return JsonResponse(
        data_card(found),
        json_dumps_params={"ensure_ascii": False, "indent": 2},
        headers={"Content-Disposition": 'attachment; filename="data-card.json"'},
    )


@require_POST
def compare(request: HttpRequest, pk: int) -> HttpResponse:
    """Makes the datasets that show what the rows are worth, and has all three trained at once."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    mine = Dataset.objects.owned_by(request.user)
    chosen = request.POST.get("real", "")
    real = get_object_or_404(mine, pk=int(chosen) if chosen.isdecimal() else 0)
    try:
        alone, both = to_dataset.comparison(
            job=found,
            real=real,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
        )
    except (RecipeError, NothingUsable, to_dataset.NothingAccepted) as error:
        messages.error(request, str(error))
        return redirect("generation:job", pk)
    query = urlencode({"real": real.pk, "synthetic": alone.pk, "both": both.pk})
    # The browser posts on: training is the classifiers' affair, and one press is enough.
    return redirect(f"{reverse('classifiers:dataset_value')}?{query}", preserve_request=True)


@require_POST
def dataset(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    try:
        made = to_dataset.to_dataset(
            job=found,
            name=request.POST.get("name", "").strip()[:200] or found.name,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
        )
    except (RecipeError, NothingUsable, to_dataset.NothingAccepted) as error:
        messages.error(request, str(error))
        return redirect("generation:job", pk)
    messages.success(request, f"Dataset “{made.name}” created with {made.rows:,} rows.")
    return redirect(reverse("datasets:detail", args=[made.pk]))


@require_POST
def add_to_dataset(request: HttpRequest, pk: int) -> HttpResponse:
    """Adds the accepted rows to a dataset, and where that is asked for has its classifier trained
    with them."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    mine = Dataset.objects.owned_by(request.user)
    chosen = request.POST.get("dataset", "")
    if asked := bool(request.POST.get("train")):
        target = _target(request, found)
        if target is None:
            messages.error(request, "The dataset of that classifier is gone. Choose another one.")
            return redirect("generation:job", pk)
        dataset = target
    else:
        dataset = get_object_or_404(mine, pk=int(chosen) if chosen.isdecimal() else 0)
    train = asked and _trains(found, dataset)
    try:
        added = add_job_rows(
            job=found,
            dataset=dataset,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
            by=found.owner,
        )
    except (RecipeError, NothingUsable, to_dataset.NothingAccepted, ValueError) as error:
        messages.error(request, str(error))
        return redirect("generation:job", pk)
    messages.success(request, f"“{dataset.name}”: {added}")
    if asked and not train:
        messages.warning(
            request,
            "Nothing was trained: the classifier was deleted, or is trained on another dataset.",
        )
    if added.rows and train:
        # The browser posts on: training is the classifiers' affair.
        again = reverse("classifiers:train", args=[found.for_classifier])
        return redirect(again, preserve_request=True)
    return redirect("datasets:detail", dataset.pk)


def _target(request: HttpRequest, found: Job) -> Dataset | None:
    """The dataset that the rows are meant for, if it is still there."""
    mine = Dataset.objects.owned_by(request.user)
    return mine.filter(pk=found.for_dataset_id).first() if found.for_dataset_id else None


def _trains(found: Job, target: Dataset | None) -> bool:
    """Whether the classifier that the rows are meant for can be trained with them."""
    key = found.for_classifier
    return target is not None and key is not None and is_trained_on(target, key)
