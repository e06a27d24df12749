"""Jobs over HTTP."""

import secrets
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.batch import services as batches
from apps.batch.models import Batch, Item, ItemStatus
from apps.batch.tasks import wake
from apps.core.api import ApiError, Page, not_found, owner, page
from apps.datasets.services import NothingUsable
from apps.generation import exports, services
from apps.generation import recipe as recipes
from apps.generation.downloads import export_response
from apps.generation.forms import MAX_SEED
from apps.generation.models import Job
from apps.generation.problems import RecipeError
from apps.generation.spec import Spec
from apps.llm.models import Server, Use
from apps.llm.services import default_target

router = Router(tags=["generation"])


class JobIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    rows: int = Field(ge=1, le=recipes.MAX_ROWS)
    recipe: dict[str, Any]
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    server: int | None = None
    model: str = Field("", max_length=300)


class JobMade(Schema):
    id: int
    status: str


class Counts(Schema):
    pending: int
    running: int
    accepted: int
    rejected: int
    failed: int


class JobOut(Schema):
    id: int
    name: str
    status: str
    reason: str
    rows: int
    seed: int
    server: int | None
    model: str
    created: Any
    counts: Counts
    rows_per_s: float | None
    tokens_per_s: float | None
    eta_s: float | None
    cached_share: float | None
    width: int
    recipe: dict[str, Any]


class UsageOut(Schema):
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class RowOut(Schema):
    index: int
    status: str
    output: Any
    reason: str
    attempts: int
    usage: UsageOut
    prompt: list[dict[str, str]]
    raw: str


class DatasetIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    text_field: str
    label_field: str


class DatasetMade(Schema):
    id: int
    rows: int


def _get(request: HttpRequest, pk: int) -> Job:
    job = (
        Job.objects.owned_by(owner(request))
        .select_related("batch", "batch__server")
        .filter(pk=pk)
        .first()
    )
    if job is None:
        raise not_found("job")
    return job


def _show(job: Job) -> dict[str, Any]:
    progress = batches.progress(job.batch)
    return {
        "id": job.pk,
        "name": job.name,
        "status": job.batch.status,
        "reason": job.batch.reason,
        "rows": job.batch.total,
        "seed": job.batch.spec["seed"],
        "server": job.batch.server_id,
        "model": job.batch.model,
        "created": job.created,
        "recipe": job.recipe,
        **{
            name: getattr(progress, name)
            for name in (
                *("counts", "rows_per_s", "tokens_per_s", "eta_s", "cached_share", "width"),
            )
        },
    }


def _made(job: Job) -> Any:
    return Status(202, {"id": job.pk, "status": job.batch.status})


def _invalid(error: RecipeError) -> ApiError:
    errors = [
        {"loc": ["body", "data", "recipe", *problem.place], "msg": problem.message}
        for problem in error.problems
    ]
    return ApiError(422, "invalid", f"The recipe is not valid: {error}", errors=errors)


def _server(data: JobIn) -> tuple[Server, str]:
    if data.server is None:
        target = default_target(Use.GENERATION)
        return target.server, data.model
    server = Server.objects.filter(pk=data.server).first()
    if server is None:
        raise not_found("server")
    return server, data.model


@router.post("/jobs", response={202: JobMade})
def create_job(request: HttpRequest, data: JobIn) -> Any:
    """Queues a job. `recipe`: system, prompt, attributes or columns, quotas, schema, params."""
    try:
        recipe = recipes.parse(data.recipe, rows=data.rows)
    except RecipeError as error:
        raise _invalid(error) from error
    server, model = _server(data)
    job = services.create_job(
        owner=owner(request),
        name=data.name.strip(),
        rows=data.rows,
        seed=secrets.randbelow(MAX_SEED) if data.seed is None else data.seed,
        recipe=recipe,
        server=server,
        model=model,
    )
    wake(server.pk)
    return _made(job)


@router.get("/jobs", response=Page[JobOut])
def list_jobs(request: HttpRequest, limit: int = 20, after: str | None = None) -> Any:
    jobs = Job.objects.owned_by(owner(request)).select_related("batch", "batch__server")
    return page(jobs, _show, limit=min(limit, 100), after=after, newest_first=True)


@router.get("/jobs/{pk}", response=JobOut)
def get_job(request: HttpRequest, pk: int) -> Any:
    return _show(_get(request, pk))


def _act(request: HttpRequest, pk: int, action: Callable[[Batch], object]) -> Any:
    job = _get(request, pk)
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


@router.get("/jobs/{pk}/rows", response=Page[RowOut])
def list_rows(
    request: HttpRequest,
    pk: int,
    status: str | None = None,
    limit: int = 100,
    after: str | None = None,
) -> Any:
    job = _get(request, pk)
    items = Item.objects.filter(batch_id=job.batch_id)
    if status is not None:
        if status not in ItemStatus.values:
            known = ", ".join(ItemStatus.values)
            raise ApiError(422, "invalid", f"There is no status {status!r}. Use {known}.")
        items = items.filter(status=status)
    spec = job.spec
    return page(items, lambda item: _show_row(spec, item), limit=limit, after=after)


def _show_row(spec: Spec, item: Item) -> dict[str, Any]:
    return {
        "index": item.index,
        "status": item.status,
        "output": item.output,
        "reason": item.reason,
        "attempts": item.attempts,
        "usage": item,
        "prompt": exports.messages_of(spec, item),
        "raw": item.raw,
    }


@router.get("/jobs/{pk}/export", response=Any)
def export_job(request: HttpRequest, pk: int, format: str = "jsonl") -> Any:
    """The accepted rows, streamed."""
    job = _get(request, pk)
    if format not in set(exports.Format):
        known = ", ".join(exports.Format)
        detail = f"There is no export as {format!r} yet. Use one of {known}."
        raise ApiError(422, "unsupported_format", detail)
    return export_response(job, exports.Format(format))


@router.post("/jobs/{pk}/to-dataset", response={201: DatasetMade})
def to_dataset(request: HttpRequest, pk: int, data: DatasetIn) -> Any:
    """The accepted rows as a dataset, to train on."""
    job = _get(request, pk)
    try:
        dataset = exports.to_dataset(
            job=job,
            name=data.name.strip(),
            text_field=data.text_field,
            label_field=data.label_field,
        )
    except RecipeError as error:
        raise ApiError(422, "unknown_field", str(error)) from error
    except exports.NothingAccepted as error:
        raise ApiError(409, "nothing_accepted", str(error)) from error
    except NothingUsable as error:
        raise ApiError(422, "nothing_usable", str(error)) from error
    return Status(201, {"id": dataset.pk, "rows": dataset.rows})
