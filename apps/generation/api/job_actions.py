"""Actions on a job over HTTP: pause, resume, cancel, retry, add rows, duplicate."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from apps.batch import services as batches
from apps.batch.models import Batch
from apps.batch.services import wake_pump
from apps.generation import services
from apps.generation.api.job_json import created, get_job_of, invalid
from apps.generation.api.router import router
from apps.generation.api.schemas import JobCreated, MoreRows
from apps.generation.recipe.problems import RecipeError


def _act(request: HttpRequest, pk: int, action: Callable[[Batch], object]) -> Any:
    job = get_job_of(request, pk)
    action(job.batch)
    wake_pump(job.batch.server_id)
    return created(job)


@router.post("/jobs/{pk}/pause", response={202: JobCreated})
def pause_job(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.pause_batch)


@router.post("/jobs/{pk}/resume", response={202: JobCreated})
def resume_job(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.resume_batch)


@router.post("/jobs/{pk}/cancel", response={202: JobCreated})
def cancel_job(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.cancel_batch)


@router.post("/jobs/{pk}/retry-failed", response={202: JobCreated})
def retry_failed(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.retry_failed_rows)


@router.post("/jobs/{pk}/add-rows", response={202: JobCreated})
def add_rows(request: HttpRequest, pk: int, data: MoreRows) -> Any:
    """Add rows, even to a finished job."""
    return _act(request, pk, lambda batch: batches.add_rows(batch, data.rows))


@router.post("/jobs/{pk}/duplicate", response={202: JobCreated})
def duplicate_job(request: HttpRequest, pk: int) -> Any:
    """Start the same job with a new seed."""
    try:
        copy = services.duplicate(get_job_of(request, pk))
    except RecipeError as error:
        raise invalid(error) from error
    wake_pump(copy.batch.server_id)
    return created(copy)
