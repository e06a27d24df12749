"""Actions on a job: pause, resume, cancel, retry, add rows, duplicate, delete, limits."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.services import wake_pump
from apps.generation import services
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import MAX_ROWS
from apps.generation.views.jobs import jobs_of

# name: (function, message on success)
ACTIONS = {
    "pause": (batches.pause_batch, "Paused. Running rows will finish."),
    "resume": (batches.resume_batch, "Job resumed."),
    "cancel": (batches.cancel_batch, "Job cancelled. Finished rows are kept."),
    "retry": (batches.retry_failed_rows, "Retrying failed rows."),
}


@require_POST
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Pause, resume, cancel, retry."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    if action not in ACTIONS:
        raise Http404
    run_action, message = ACTIONS[action]
    try:
        run_action(found.batch)
    except WrongState as error:
        messages.error(request, str(error))
    else:
        messages.success(request, message)
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
            return redirect("generation:recipe", pk)
        values[name] = int(text) if text else None
    values["weight"] = values["weight"] or 1
    batches.change_batch(found.batch, **values)
    messages.success(request, "Limits saved. They apply within a second.")
    return redirect("generation:recipe", pk)
