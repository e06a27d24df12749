"""The page of a new job: edit a recipe, queue the job."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.api import owner as signed_in
from apps.datasets.models import Dataset
from apps.generation import services
from apps.generation.job_request import RecipeModel
from apps.generation.previews.column_marks import column_marks
from apps.generation.recipe import estimates, targets
from apps.generation.recipe import parse as recipes
from apps.generation.recipe.columns import checks, seed_rows
from apps.generation.recipe.library import starters, versions
from apps.generation.recipe.problems import RecipeError
from apps.generation.views.column_types import COLUMN_TYPES, SETTING_GROUPS
from apps.generation.views.draft import Draft
from apps.generation.views.draft_sources import first_draft
from apps.generation.views.form_numbers import key_of
from apps.servers.services import NoServer

DATASETS_SHOWN = 200
PROBLEMS = "generation/editor/_problems.html"


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    owner = signed_in(request)
    if request.method != "POST":
        return _form(request, first_draft(request, owner)) if request.GET else _start(request)
    draft = Draft.posted(request.POST)
    job_request = draft.read()
    if job_request is None:
        return _form(request, draft, status=422)
    datasets = Dataset.objects.owned_by(owner)
    try:
        target = targets.target_of_choice(draft.target)
        model = RecipeModel(target.server, targets.stored_model(target))
        job = services.submit(
            replace(
                job_request,
                for_dataset=datasets.filter(pk=key_of(draft.for_dataset)).first(),
                for_classifier=key_of(draft.for_classifier) or None,
            ),
            owner=owner,
            target=target,
            recipe_model=model if draft.target else RecipeModel(),
        )
    except Dataset.DoesNotExist as error:
        raise Http404 from error
    except NoServer as error:
        draft.errors["target"] = str(error)
    except RecipeError as error:
        draft.report_all(error)
    else:
        return _opened(request, job.pk)
    return _form(request, draft, status=422)


def _opened(request: HttpRequest, job: int) -> HttpResponse:
    """The way to the job; as a header for the script, which stays on the page if it is refused."""
    if request.headers.get("HX-Request"):
        return HttpResponse(
            status=204, headers={"HX-Redirect": reverse("generation:job", args=[job])}
        )
    return redirect("generation:job", job)


def _start(request: HttpRequest) -> HttpResponse:
    """The recipes to begin with: an empty one, ready ones, the person's own."""
    ready = [(starter, recipes.column_names(starter.recipe)) for starter in starters.STARTERS]
    saved = versions.saved_recipes_of(signed_in(request))
    return render(request, "generation/editor/start.html", {"ready": ready, "saved": saved})


def _form(request: HttpRequest, draft: Draft, status: int = 200) -> HttpResponse:
    if status == 422 and request.headers.get("HX-Request"):
        return render(request, PROBLEMS, draft.feedback(), status=status)
    datasets = Dataset.objects.owned_by(signed_in(request)).only("pk", "name", "rows")
    context = {
        "draft": draft,
        "offered": targets.model_choices(draft.target),
        "before": _known_speed(draft),
        "kinds": COLUMN_TYPES,
        "check_kinds": checks.KINDS,
        "setting_groups": SETTING_GROUPS,
        "formats": seed_rows.FORMATS,
        "datasets": datasets[:DATASETS_SHOWN],
        "problems": draft.problem_places(),
    }
    return render(request, "generation/editor/editor.html", context, status=status)


def _known_speed(draft: Draft) -> dict[str, Any]:
    """The expected time, from earlier jobs."""
    if draft.earlier_batch is not None:
        return {
            "seconds": estimates.estimate_from_job(draft.earlier_batch, draft.earlier_batch.wanted)
        }
    try:
        target = targets.target_of_choice(draft.target)
    except NoServer:
        return {}
    rates = estimates.recent_rates(target.server, target.model)
    return {"rates": (min(rates), max(rates)) if rates else None, "target": target}


@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """The problems of the recipe, while it is being typed."""
    draft = Draft.posted(request.POST)
    draft.name = draft.name or "Check"
    job_request = draft.read()
    marks = []
    if job_request is not None:
        marks = column_marks(job_request.recipe, job_request.seed, draft.target)
    context = {**draft.feedback(), "marks": marks}
    return render(request, PROBLEMS, context)
