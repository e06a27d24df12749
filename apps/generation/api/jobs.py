"""Jobs over HTTP."""

import secrets
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.batch import services as batches
from apps.batch.models import Batch
from apps.batch.tasks import wake
from apps.core.api import ApiError, NotFound, Page, get_owned, owner, page
from apps.datasets.models import Dataset
from apps.generation import services
from apps.generation.models import Job
from apps.generation.recipe import parse as recipes
from apps.generation.recipe import targets, versions
from apps.generation.recipe.body import RecipeJson
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import MAX_ROWS, MAX_SEED
from apps.servers.models import Server

router = Router(tags=["generation"])


class JobIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    rows: int = Field(ge=1, le=MAX_ROWS)
    recipe: RecipeJson
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    server: int | None = Field(None, description="Default: the server that is set for generation.")
    model: str = Field(
        "",
        max_length=300,
        description="Default: the one set for generation, or the server's first.",
    )
    keep_recipe: bool = Field(False, description="List the recipe among your recipes.")
    refill: bool = Field(
        False, description="Keep generating until `rows` rows are accepted, quotas included."
    )
    near_duplicates: float | None = Field(
        None,
        ge=0.5,
        le=1,
        description=(
            "Reject a row that shares this fraction of 5-character sequences with an earlier row."
        ),
    )
    near_duplicates_by_meaning: float | None = Field(
        None,
        ge=0.5,
        le=1,
        description="Reject a row with this cosine similarity to an earlier row. Start with 0.9.",
    )
    test_dataset: int | None = Field(
        None, description="A dataset whose texts must not be repeated."
    )
    width: int | None = Field(None, ge=1, le=1000, description="Max rows in parallel.")
    weight: int = Field(1, ge=1, le=100, description="Priority relative to other jobs.")
    daily_tokens: int | None = Field(None, ge=1, le=10**12)


class JobMade(Schema):
    id: int
    status: str


class Settings(Schema):
    """What can be changed while a job runs."""

    name: str | None = Field(None, min_length=1, max_length=200, pattern=r"\S")
    width: int | None = Field(None, ge=1, le=1000)
    weight: int | None = Field(None, ge=1, le=100)
    daily_tokens: int | None = Field(None, ge=1, le=10**12)


class MoreRows(Schema):
    rows: int = Field(ge=1, le=MAX_ROWS)


class Counts(Schema):
    pending: int
    running: int
    accepted: int
    rejected: int
    failed: int


class Reason(Schema):
    status: str
    code: str
    rows: int


class JobOut(Schema):
    id: int
    name: str
    status: str
    reason: str
    rows: int
    made: int
    refill: bool
    seed: int
    server: int | None
    server_name: str | None
    model: str
    created: Any
    counts: Counts
    reasons: list[Reason]
    rows_per_s: float | None
    tokens_per_s: float | None
    eta_s: float | None
    cached_share: float | None
    width: int
    weight: int
    daily_tokens: int | None
    near_duplicates: float | None
    near_duplicates_by_meaning: float | None
    recipe_version: int | None
    for_dataset: int | None = Field(description="The dataset it makes more rows for.")
    for_classifier: int | None = Field(description="The classifier it was begun from.")
    recipe: RecipeJson


def get_job_of(request: HttpRequest, pk: int) -> Job:
    job = (
        Job.objects.owned_by(owner(request))
        .select_related("batch", "batch__server", "version")
        .filter(pk=pk)
        .first()
    )
    if job is None:
        raise NotFound("job")
    return job


def _show(job: Job) -> dict[str, Any]:
    batch = job.batch
    progress = batches.progress(batch)
    return {
        "id": job.pk,
        "name": job.name,
        "status": batch.status,
        "reason": batches.reason_of(batch),
        "rows": batch.wanted,
        "made": batch.total,
        "refill": batch.goal is not None,
        "seed": batch.spec["seed"],
        "server": batch.server_id,
        "server_name": batch.server.name if batch.server else None,
        "model": batch.model,
        "created": job.created,
        "recipe": job.recipe,
        "for_dataset": job.for_dataset_id,
        "for_classifier": job.for_classifier,
        "weight": batch.weight,
        "daily_tokens": batch.daily_tokens,
        "near_duplicates": batch.spec.get("filters", {}).get("near"),
        "near_duplicates_by_meaning": batch.spec.get("filters", {}).get("meaning"),
        "recipe_version": job.version.number if job.version else None,
        "reasons": [
            {"status": status, "code": code, "rows": rows}
            for status, code, rows in progress.reasons
        ],
        **{
            name: getattr(progress, name)
            for name in (
                *("counts", "rows_per_s", "tokens_per_s", "eta_s", "cached_share", "width"),
            )
        },
    }


def _made(job: Job) -> Any:
    return Status(202, {"id": job.pk, "status": job.batch.status})


def invalid(error: RecipeError) -> ApiError:
    errors = [
        {"loc": ["body", "data", "recipe", *problem.place], "msg": problem.message}
        for problem in error.problems
    ]
    return ApiError(422, "invalid", f"The recipe is not valid: {error}", errors=errors)


def _server(data: JobIn) -> tuple[Server, str]:
    server = None
    if data.server is not None:
        server = Server.objects.filter(pk=data.server).first()
        if server is None:
            raise NotFound("server")
    target = targets.named(server, data.model)
    return target.server, targets.stored_model(target)


@router.post("/jobs", response={202: JobMade})
def create_job(request: HttpRequest, data: JobIn) -> Any:
    """Queues a job. `recipe`: system, prompt, attributes or columns, quotas, schema, params.

    The recipe is kept under the job's name: as a new version, if it differs from the last one. With
    `keep_recipe` it is listed among your recipes.
    """
    test_dataset = None
    if data.test_dataset is not None:
        test_dataset = get_owned(Dataset, request, data.test_dataset, name="test dataset")
    try:
        recipe = recipes.parse(data.recipe, rows=data.rows)
        server, model = _server(data)
        name = data.name.strip()
        job = services.create_job(
            owner=owner(request),
            name=name,
            rows=data.rows,
            seed=secrets.randbelow(MAX_SEED) if data.seed is None else data.seed,
            recipe=recipe,
            server=server,
            model=model,
            refill=data.refill,
            near=data.near_duplicates,
            meaning=data.near_duplicates_by_meaning,
            test_dataset=test_dataset,
            width=data.width,
            weight=data.weight,
            daily_tokens=data.daily_tokens,
            version=lambda: versions.save(
                owner=owner(request),
                name=name,
                recipe=recipe,
                server=server if data.server is not None or data.model else None,
                model=data.model,
                keep=data.keep_recipe,
            ),
        )
    except RecipeError as error:
        raise invalid(error) from error
    wake(server.pk)
    return _made(job)


@router.get("/jobs", response=Page[JobOut])
def list_jobs(request: HttpRequest, limit: int = 20, after: str | None = None) -> Any:
    jobs = Job.objects.owned_by(owner(request)).select_related("batch", "batch__server", "version")
    return page(jobs, _show, limit=min(limit, 100), after=after, newest_first=True)


@router.get("/jobs/{pk}", response=JobOut)
def get_job(request: HttpRequest, pk: int) -> Any:
    return _show(get_job_of(request, pk))


@router.patch("/jobs/{pk}", response=JobOut)
def change_job(request: HttpRequest, pk: int, data: Settings) -> Any:
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
        Batch.objects.filter(pk=job.batch_id).update(**given)
    return _show(get_job_of(request, pk))


@router.delete("/jobs/{pk}", response={204: None})
def delete_job(request: HttpRequest, pk: int) -> Any:
    """Delete a job and all its rows. Datasets created from it are kept."""
    services.delete(get_job_of(request, pk))
    return Status(204, None)


def _act(request: HttpRequest, pk: int, action: Callable[[Batch], object]) -> Any:
    job = get_job_of(request, pk)
    try:
        action(job.batch)
    except batches.WrongState as error:
        raise ApiError(409, "wrong_state", str(error)) from error
    wake(job.batch.server_id)
    return _made(job)


@router.post("/jobs/{pk}/pause", response={202: JobMade})
def pause_job(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.pause)


@router.post("/jobs/{pk}/resume", response={202: JobMade})
def resume_job(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.resume)


@router.post("/jobs/{pk}/cancel", response={202: JobMade})
def cancel_job(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.cancel)


@router.post("/jobs/{pk}/retry-failed", response={202: JobMade})
def retry_failed(request: HttpRequest, pk: int) -> Any:
    return _act(request, pk, batches.retry_failed)


@router.post("/jobs/{pk}/add-rows", response={202: JobMade})
def add_rows(request: HttpRequest, pk: int, data: MoreRows) -> Any:
    """Add rows, even to a finished job."""
    return _act(request, pk, lambda batch: batches.add_rows(batch, data.rows))


@router.post("/jobs/{pk}/duplicate", response={202: JobMade})
def duplicate_job(request: HttpRequest, pk: int) -> Any:
    """Start the same job with a new seed."""
    try:
        copy = services.duplicate(get_job_of(request, pk))
    except batches.WrongState as error:
        raise ApiError(409, "wrong_state", str(error)) from error
    except RecipeError as error:
        raise invalid(error) from error
    wake(copy.batch.server_id)
    return _made(copy)
