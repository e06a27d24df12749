"""The page of a job: its head, and a tab each for rows, quality, use and recipe."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from apps.batch.models import BatchStatus, ItemStatus
from apps.batch.services import rows_of
from apps.datasets.models import Dataset
from apps.generation import services
from apps.generation.exports import to_dataset
from apps.generation.figures.distributions import column_shares, score_histograms
from apps.generation.figures.job_state import job_state
from apps.generation.models import Job
from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.library import versions
from apps.generation.recipe.library.compare import compare_recipes
from apps.generation.recipe.params import PARAM_LABELS
from apps.generation.review.job_status import job_status
from apps.generation.review.similar_rows import sample_rows
from apps.generation.rows import preview
from apps.generation.rows.conversations import Sides
from apps.generation.views.job_page.job_list import job_list
from apps.generation.views.job_page.rows import row_table
from apps.generation.views.jobs import can_train, jobs_of, target_dataset
from apps.generation.views.row_review import thresholds

DATASETS_SHOWN = 200
VALUES_SHOWN = 30
DONE = (BatchStatus.DONE, BatchStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column of the recipe as the page shows it."""

    name: str
    kind: str
    prompt: str
    values: tuple[str, ...]
    more: int
    """Values that are not shown."""


def head(request: HttpRequest, found: Job, tab: str) -> dict[str, Any]:
    """Build the context that all tabs share."""
    status = job_status(found)
    progress = status["progress"]
    return {
        **status,
        **job_list(request, found),
        "state": job_state(found.batch.status, progress.counts, progress.wanted),
        "tab": tab,
        "changed": False,
        "unseen": None,
        "reviewed": 0,
        "large": services.is_large(found.batch),
    }


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a job where it is most useful: rows while it works, the use of them afterwards."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    accepted = rows_of(found.batch_id).filter(status=ItemStatus.ACCEPTED)
    if found.batch.status in DONE and not request.GET and accepted.exists():
        return _use(request, found)
    return _rows(request, found)


@require_safe
def rows(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the tab of rows; for htmx the table alone."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    if request.headers.get("HX-Request") and not request.headers.get("HX-Boosted"):
        return render(request, "generation/rows/_rows.html", row_table(request, found))
    return _rows(request, found)


def _rows(request: HttpRequest, found: Job) -> HttpResponse:
    context = {**row_table(request, found), **head(request, found, "rows")}
    return render(request, "generation/job/rows.html", context)


@require_safe
def quality(request: HttpRequest, pk: int) -> HttpResponse:
    """Show how good and how varied the rows are."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    spec = found.spec
    context = {
        **head(request, found, "quality"),
        "scores": score_histograms(found),
        "shares": column_shares(found, sample_rows(found)),
        "near_step": thresholds.step_of(spec.filters.near),
        "meaning_step": thresholds.step_of(spec.filters.meaning),
    }
    return render(request, "generation/job/quality.html", context)


@require_safe
def use(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what can be done with the accepted rows."""
    return _use(request, get_object_or_404(jobs_of(request), pk=pk))


def _use(request: HttpRequest, found: Job) -> HttpResponse:
    recipe = found.spec.recipe
    shared = head(request, found, "use")
    unseen = rows_of(found.batch_id).filter(status=ItemStatus.ACCEPTED, reviewed=False).count()
    context = {
        **shared,
        "names": recipe.field_names,
        "labels": recipe.label_candidates,
        "sides": Sides.of(recipe),
        "unseen": unseen,
        "reviewed": shared["progress"].counts[ItemStatus.ACCEPTED] - unseen,
        "real": to_dataset.real_datasets(found.owner),
        "datasets": Dataset.objects.owned_by(request.user).only("pk", "name")[:DATASETS_SHOWN],
        "target": (target := target_dataset(request, found)),
        "trains": can_train(found, target),
    }
    return render(request, "generation/job/use.html", context)


@require_safe
def recipe(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the recipe of a job, and what has changed in it since."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    version = found.version
    newest = versions.newest_version(version.saved_id) if version else None
    is_changed = newest is not None and newest != version
    context = {
        **head(request, found, "recipe"),
        "spec": found.spec,
        "params": [
            f"{PARAM_LABELS.get(name, name.replace('_', ' '))} {value}"
            for name, value in found.spec.recipe.params.items()
            if value is not None
        ],
        "columns": [_column_line(column) for column in found.spec.recipe.columns],
        "recipe_json": preview.format_json(found.recipe),
        "newest": newest if is_changed else None,
        "changes": compare_recipes(found.recipe, newest.body) if newest and is_changed else [],
    }
    return render(request, "generation/job/recipe.html", context)


def _column_line(column: Column) -> ColumnLine:
    values = column.values if isinstance(column, Choice) else ()
    return ColumnLine(
        column.name or "Row",
        column.kind or "answer",
        column.prompt if isinstance(column, Written) else "",
        values[:VALUES_SHOWN],
        max(0, len(values) - VALUES_SHOWN),
    )


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the live part of the page, polled while the job runs; tells the page when it ends.

    The tag and the button of the head come along when the state has changed.
    """
    found = get_object_or_404(jobs_of(request), pk=pk)
    context = job_status(found)
    figures = context["progress"]
    context["state"] = job_state(found.batch.status, figures.counts, figures.wanted)
    context |= {"unseen": None, "reviewed": 0}
    context["changed"] = request.GET.get("was", found.batch.status) != found.batch.status
    answer = render(request, "generation/job/progress/_progress_update.html", context)
    if not context["live"]:
        answer["HX-Trigger"] = "job-ended"
    return answer
