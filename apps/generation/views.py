from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.batch import services as batches
from apps.batch.models import ACTIVE, BatchStatus, Item, ItemStatus
from apps.batch.tasks import wake
from apps.core.db import in_db
from apps.datasets.services import NothingUsable
from apps.generation import exports, previews, services
from apps.generation.downloads import export_response
from apps.generation.forms import KINDS, Draft
from apps.generation.models import Job
from apps.generation.problems import RecipeError
from apps.generation.reasons import label_of
from apps.generation.starters import BY_KEY, STARTERS
from apps.llm.errors import LLMError
from apps.llm.models import Use
from apps.llm.services import NoServer, default_target

JOBS_A_PAGE = 20
ROWS_A_PAGE = 25
FIELDS_SHOWN = 4

# Every place for a sentence in the form: a preview fills some and empties the others.
ERROR_PLACES = (
    *("name", "system", "prompt", "attributes", "fields"),
    *("rows", "max_tokens", "temperature", "seed"),
)

# name: (what is done, what is said afterwards)
ACTIONS = {
    "pause": (batches.pause, "Paused. Rows in flight are being finished."),
    "resume": (batches.resume, "The job goes on."),
    "cancel": (batches.cancel, "Cancelled. The finished rows stay."),
    "retry": (batches.retry_failed, "The failed rows are tried again."),
}


def _jobs(request: HttpRequest) -> Any:
    return Job.objects.owned_by(request.user).select_related("batch", "batch__server")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    page = Paginator(_jobs(request), JOBS_A_PAGE).get_page(request.GET.get("page"))
    progress = batches.counts_of([job.batch for job in page.object_list])
    shown = [(job, progress[job.batch_id]) for job in page.object_list]
    running = any(job.batch.status in ACTIVE for job in page.object_list)
    context = {"page": page, "jobs": shown, "running": running, "starters": STARTERS}
    fragment = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    return render(
        request, "generation/_jobs.html" if fragment else "generation/index.html", context
    )


# --- A new job ----------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _form(request, _first_draft(request))
    assert isinstance(request.user, User)
    draft = Draft.posted(request.POST)
    plan = draft.read()
    if plan is None:
        return _form(request, draft, status=422)
    try:
        target = default_target(Use.GENERATION)
    except NoServer as error:
        draft.errors["server"] = str(error)
        return _form(request, draft, status=422)
    job = services.create_job(
        owner=request.user,
        name=plan.name,
        rows=plan.rows,
        seed=plan.seed,
        recipe=plan.recipe,
        server=target.server,
    )
    wake(target.server.pk)
    return redirect("generation:job", job.pk)


def _first_draft(request: HttpRequest) -> Draft:
    """Empty, from a ready recipe, or from an earlier job."""
    if (starter := BY_KEY.get(request.GET.get("recipe", ""))) is not None:
        return Draft.of(starter.name, starter.recipe)
    if (again := request.GET.get("like", "")).isdecimal():
        job = get_object_or_404(_jobs(request), pk=int(again))
        draft = Draft.of(job.name, job.recipe)
        draft.rows = str(job.batch.total)
        return draft
    return Draft.blank()


def _form(request: HttpRequest, draft: Draft, status: int = 200) -> HttpResponse:
    return render(request, "generation/new.html", {"draft": draft, "kinds": KINDS}, status=status)


@require_POST
async def preview(request: HttpRequest) -> HttpResponse:
    """Three rows, really asked for; or what is wrong, at the fields. Both in one fragment."""
    draft = Draft.posted(request.POST)
    draft.name = draft.name or "Preview"
    plan = draft.read()
    context: dict[str, Any] = {
        "draft": draft,
        "sentences": [(name, draft.errors.get(name, "")) for name in ERROR_PLACES],
    }
    if plan is not None:
        try:
            target = await in_db(default_target, Use.GENERATION)
            context["rows"] = await previews.preview(target, plan.recipe, plan.seed)
            context["system"] = plan.recipe.system_message
        except (NoServer, LLMError) as error:
            context["problem"] = str(error)
    return await sync_to_async(render)(request, "generation/_preview.html", context)


# --- One job ------------------------------------------------------------------


def _standing(job: Job) -> dict[str, Any]:
    """What the live part of a job's page shows."""
    progress = batches.progress(job.batch)
    status = job.batch.status
    open_rows = status not in (BatchStatus.DONE, BatchStatus.CANCELLED)
    return {
        "job": job,
        "progress": progress,
        "reasons": [
            (row_status, label_of(code), rows) for row_status, code, rows in progress.reasons
        ],
        # The last rows of a job that was cancelled are still being closed for a moment.
        "live": status in ACTIVE or progress.counts[ItemStatus.RUNNING] > 0,
        "can": {
            "pause": status in ACTIVE,
            "resume": status in (BatchStatus.PAUSED, BatchStatus.FAILED),
            "cancel": open_rows,
            "retry": status != BatchStatus.CANCELLED and progress.counts[ItemStatus.FAILED] > 0,
        },
    }


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(_jobs(request), pk=pk)
    spec = found.spec
    context = {
        **_standing(found),
        **_table(request, found),
        "spec": spec,
        "names": spec.recipe.field_names,
        "labels": spec.recipe.label_names,
    }
    return render(request, "generation/job.html", context)


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Asked again and again while the job runs. Tells the table when there are new rows."""
    found = get_object_or_404(_jobs(request), pk=pk)
    context = _standing(found)
    answer = render(request, "generation/_progress.html", context)
    if request.GET.get("seen") != str(context["progress"].finished) or not context["live"]:
        answer["HX-Trigger"] = "rows-changed"
    return answer


@require_safe
def rows(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(_jobs(request), pk=pk)
    return render(request, "generation/_rows.html", _table(request, found))


def _table(request: HttpRequest, found: Job) -> dict[str, Any]:
    """One page of rows. The count comes from the grouped counts: no second query for it."""
    status = request.GET.get("status", "")
    if status not in ItemStatus.values:
        status = ""
    items = Item.objects.filter(batch_id=found.batch_id).order_by("index")
    if status:
        items = items.filter(status=status)
    page = Paginator(items, ROWS_A_PAGE).get_page(request.GET.get("page"))
    spec = found.spec
    names = spec.recipe.field_names[:FIELDS_SHOWN]
    shown = [(item, exports.cells(spec, item, names)) for item in page.object_list]
    return {
        "job": found,
        "page": page,
        "table": shown,
        "fields": names,
        "status": status,
        "statuses": ItemStatus.choices,
    }


@require_safe
def row(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    found = get_object_or_404(_jobs(request), pk=pk)
    item = get_object_or_404(Item, batch_id=found.batch_id, index=index)
    context = {
        "job": found,
        "item": item,
        "messages_sent": exports.messages_of(found.spec, item),
        "output": previews.pretty(item.output),
        "last": found.batch.total - 1,
    }
    return render(request, "generation/row.html", context)


@require_POST
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Pause, resume, cancel, retry."""
    found = get_object_or_404(_jobs(request), pk=pk)
    if action not in ACTIONS:
        raise Http404
    do, said = ACTIONS[action]
    try:
        do(found.batch)
    except batches.WrongState as error:
        messages.error(request, str(error))
    else:
        messages.success(request, said)
        wake(found.batch.server_id)
    return redirect("generation:job", pk)


@require_safe
def export(request: HttpRequest, pk: int) -> HttpResponseBase:
    found = get_object_or_404(_jobs(request), pk=pk)
    name = request.GET.get("format", "jsonl")
    if name not in set(exports.Format):
        raise Http404
    return export_response(found, exports.Format(name))


@require_POST
def dataset(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(_jobs(request), pk=pk)
    try:
        made = exports.to_dataset(
            job=found,
            name=request.POST.get("name", "").strip()[:200] or found.name,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
        )
    except (RecipeError, NothingUsable, exports.NothingAccepted) as error:
        messages.error(request, str(error))
        return redirect("generation:job", pk)
    messages.success(request, f"The dataset “{made.name}” has {made.rows:,} rows.")
    return redirect(reverse("datasets:detail", args=[made.pk]))
