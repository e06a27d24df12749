"""The jobs of a person: where all of their pages begin."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.batch import services as batches
from apps.datasets.models import Dataset
from apps.datasets.services import is_trained_on
from apps.generation import services
from apps.generation.job_request import JobRequest, RecipeModel
from apps.generation.models import Job
from apps.generation.recipe import parse as recipes
from apps.generation.recipe import targets
from apps.generation.recipe.library.starters import STARTERS
from apps.generation.recipe.problems import RecipeError
from apps.generation.views.job_page.job_list import job_list
from apps.servers.services import NoServer

EXAMPLE_ROWS = 20


def jobs_of(request: HttpRequest) -> Any:
    return Job.objects.owned_by(request.user).select_related("batch", "batch__server", "version")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the first page of the area; for htmx the list of jobs alone."""
    context = job_list(request)
    if request.headers.get("HX-Request") and not request.headers.get("HX-Boosted"):
        key = request.GET.get("open", "")
        context["list_current"] = {"pk": int(key) if key.isdecimal() and len(key) < 10 else 0}
        return render(request, "generation/job/list/_list_body.html", context)
    return render(request, "generation/index.html", context | {"starters": STARTERS})


@require_safe
def throughput(request: HttpRequest, pk: int) -> HttpResponse:
    """Slots used and rows a second over time, for the chart."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    points = batches.throughput_of(found.batch_id).points
    server = found.batch.server
    slots = server.slots_of(found.batch.model) if server is not None else 0
    return JsonResponse({"points": [point.to_json() for point in points], "slots": slots})


def target_dataset(request: HttpRequest, found: Job) -> Dataset | None:
    """The dataset that the rows are meant for, if it is still there."""
    mine = Dataset.objects.owned_by(request.user)
    return mine.filter(pk=found.for_dataset_id).first() if found.for_dataset_id else None


def can_train(found: Job, target: Dataset | None) -> bool:
    """True if the classifier of the job can be trained with its rows."""
    key = found.for_classifier
    return target is not None and key is not None and is_trained_on(target, key)


@require_POST
def start_example(request: HttpRequest) -> HttpResponse:
    """Start a small job of the first ready recipe."""
    starter = STARTERS[0]
    wanted = JobRequest(
        name=starter.name,
        rows=EXAMPLE_ROWS,
        seed=0,
        recipe=recipes.parse(starter.recipe, rows=EXAMPLE_ROWS),
    )
    try:
        target = targets.requested_target(None, "")
        job = services.submit(
            wanted, owner=cast(User, request.user), target=target, recipe_model=RecipeModel()
        )
    except (NoServer, RecipeError) as error:
        messages.error(request, str(error))
        return redirect("core:home")
    return redirect("generation:job", job.pk)
