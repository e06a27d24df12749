"""Jobs over HTTP: create, list, change, delete."""

import secrets
from typing import Any

from django.http import HttpRequest
from ninja import Status

from apps.batch import services as batches
from apps.core.api import NotFound, Page, owner, page
from apps.datasets.models import Dataset
from apps.generation import services
from apps.generation.api.job_json import created, get_job_of, invalid, job_json
from apps.generation.api.router import router
from apps.generation.api.schemas import JobChanges, JobCreated, JobIn, JobOut
from apps.generation.job_request import JobRequest, RecipeModel
from apps.generation.models import Job
from apps.generation.recipe import parse as recipes
from apps.generation.recipe import targets
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import MAX_SEED
from apps.servers.models import Server


def _server(data: JobIn) -> Server | None:
    if data.server is None:
        return None
    server = Server.objects.filter(pk=data.server).first()
    if server is None:
        raise NotFound("server")
    return server


def _job_request(data: JobIn) -> JobRequest:
    return JobRequest(
        name=data.name.strip(),
        rows=data.rows,
        seed=secrets.randbelow(MAX_SEED) if data.seed is None else data.seed,
        recipe=recipes.parse(data.recipe, rows=data.rows),
        refill=data.refill,
        near=data.near_duplicates,
        meaning=data.near_duplicates_by_meaning,
        test_dataset=data.test_dataset,
        width=data.width,
        weight=data.weight,
        daily_tokens=data.daily_tokens,
        all_servers=data.all_servers,
        keep_recipe=data.keep_recipe,
    )


@router.post("/jobs", response={202: JobCreated})
def create_job(request: HttpRequest, data: JobIn) -> Any:
    """Queue a job.

    The recipe is saved under the job's name, as a new version if it differs from the last one. With
    `keep_recipe` it is listed among your recipes.
    """
    try:
        job_request, server = _job_request(data), _server(data)
        target = targets.requested_target(server, data.model)
        named = target.server if server is not None or data.model else None
        job = services.submit(
            job_request,
            owner=owner(request),
            target=target,
            recipe_model=RecipeModel(named, data.model),
        )
    except Dataset.DoesNotExist as error:
        raise NotFound("test dataset") from error
    except RecipeError as error:
        raise invalid(error) from error
    return created(job)


@router.get("/jobs", response=Page[JobOut])
def list_jobs(request: HttpRequest, limit: int = 20, after: str | None = None) -> Any:
    jobs = Job.objects.owned_by(owner(request)).select_related("batch", "batch__server", "version")
    return page(jobs, job_json, limit=min(limit, 100), after=after, newest_first=True)


@router.get("/jobs/{pk}", response=JobOut)
def get_job(request: HttpRequest, pk: int) -> Any:
    return job_json(get_job_of(request, pk))


@router.patch("/jobs/{pk}", response=JobOut)
def change_job(request: HttpRequest, pk: int, data: JobChanges) -> Any:
    """Change the name, width, weight or daily token limit, even while the job runs.

    null removes a limit.
    """
    job = get_job_of(request, pk)
    given = data.dict(exclude_unset=True)
    if given.get("name"):
        services.rename(job, given["name"].strip())
    given.pop("name", None)
    if "weight" in given and given["weight"] is None:
        del given["weight"]
    if given:
        batches.change_batch(job.batch, **given)
    return job_json(get_job_of(request, pk))


@router.delete("/jobs/{pk}", response={204: None})
def delete_job(request: HttpRequest, pk: int) -> Any:
    """Delete a job and all its rows. Datasets created from it are kept."""
    services.delete(get_job_of(request, pk))
    return Status(204, None)
