"""Jobs and errors of recipes as the API returns them, and the look-up of a job."""

from typing import Any

from django.http import HttpRequest
from ninja import Status

from apps.batch import services as batches
from apps.core.api import ApiError, get_owned
from apps.core.errors import ErrorPlace
from apps.generation.api.schemas import Counts, JobOut, JobServerOut, Reason
from apps.generation.models import Job
from apps.generation.recipe.problems import RecipeError


def get_job_of(request: HttpRequest, pk: int) -> Job:
    jobs = Job.objects.select_related("batch", "batch__server", "version")
    return get_owned(jobs, request, pk, name="job")


def created(job: Job) -> Any:
    """The answer 202: the job runs in the background."""
    return Status(202, {"id": job.pk, "status": job.batch.status})


def job_json(job: Job) -> JobOut:
    batch = job.batch
    progress = batches.compute_progress(batch)
    filters = job.spec.filters
    return JobOut(
        id=job.pk,
        name=job.name,
        status=batch.status,
        reason=batches.wait_reason(batch),
        rows=batch.wanted,
        made=batch.total,
        refill=batch.goal is not None,
        seed=job.spec.seed,
        server=batch.server_id,
        server_name=batch.server.name if batch.server else None,
        model=batch.model,
        created=job.created,
        recipe=job.recipe,
        for_dataset=job.for_dataset_id,
        for_classifier=job.for_classifier,
        weight=batch.weight,
        daily_tokens=batch.daily_tokens,
        near_duplicates=filters.near,
        near_duplicates_by_meaning=filters.meaning,
        recipe_version=job.version.number if job.version else None,
        reasons=[
            Reason(status=status, code=code, rows=rows) for status, code, rows in progress.reasons
        ],
        counts=Counts(**progress.counts),
        rows_per_s=progress.rows_per_s,
        tokens_per_s=progress.tokens_per_s,
        eta_s=progress.eta_s,
        cached_share=progress.cached_share,
        width=progress.width,
        all_servers=batch.all_servers,
        servers=[_server_json(found) for found in batches.servers_of(batch)],
    )


def _server_json(found: batches.JobServer) -> JobServerOut:
    return JobServerOut(
        id=found.server.pk,
        name=found.server.name,
        state=found.state,
        reason=found.reason,
        is_fallback=found.is_fallback,
        width=found.width,
        rows=found.rows,
        rows_per_s=found.rows_per_s,
    )


def invalid(error: RecipeError) -> ApiError:
    errors = [
        ErrorPlace(loc=["body", "data", "recipe", *problem.place], msg=problem.message)
        for problem in error.problems
    ]
    return ApiError(422, "invalid", f"The recipe is not valid: {error}", errors=errors)
