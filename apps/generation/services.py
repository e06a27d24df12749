"""Jobs: create, duplicate, rename and delete them. The door of this room."""

import secrets
from collections.abc import Callable
from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Batch
from apps.batch.services import BatchOptions, create_batch
from apps.generation.job_request import JobRequest, RecipeModel
from apps.generation.models import Job, RecipeVersion, StoredRows
from apps.generation.recipe import targets
from apps.generation.recipe.library import versions
from apps.generation.recipe.recipe import MAX_SEED
from apps.generation.recipe.spec import HANDLER, change_filters, stored_rows_of
from apps.generation.rows.seed_tables import read_sources, store_spec
from apps.servers.models import Server
from apps.servers.services import Target

LARGE_ROWS = 500
LARGE_TOKENS = 200_000

MakeVersion = Callable[[], RecipeVersion]


def create_job(
    request: JobRequest,
    *,
    owner: User,
    server: Server,
    model: str = "",
    version: RecipeVersion | MakeVersion | None = None,
) -> Job:
    """Create a queued job with its pending rows. The caller wakes the pump.

    Args:
        version: of its recipe, or what makes it: a job that is refused leaves none.

    Raises:
        Dataset.DoesNotExist: the owner has no such test dataset.
        RecipeError: the rows that a seed column names are not there, or rows cannot be compared by
            meaning.
    """
    sources = read_sources(request, owner)
    # What was read above may be large: nobody else who writes waits for it.
    with transaction.atomic():
        batch = create_batch(
            owner=owner,
            server=server,
            name=request.name,
            model=model,
            handler=HANDLER,
            spec=store_spec(request, owner, sources).as_dict(),
            inputs=request.rows,  # a row's index says which it is: the recipe does the rest
            options=_batch_options(request),
        )
        return Job.objects.create(
            owner=owner,
            name=request.name,
            batch=batch,
            version=version() if callable(version) else version,
            test_dataset=sources.test_name,
            for_dataset=request.for_dataset,
            for_classifier=request.for_classifier,
        )


def _batch_options(request: JobRequest) -> BatchOptions:
    return BatchOptions(
        weight=request.weight,
        refill=request.refill,
        width=request.width,
        daily_tokens=request.daily_tokens,
        all_servers=request.all_servers,
        may_fall_back=True,
    )


def submit(request: JobRequest, *, owner: User, target: Target, recipe_model: RecipeModel) -> Job:
    """Create the job, save its recipe as a version, and wake the worker.

    Raises:
        Dataset.DoesNotExist, RecipeError: see `create_job`.
    """
    job = create_job(
        request,
        owner=owner,
        server=target.server,
        model=targets.stored_model(target),
        version=lambda: versions.save_version(
            owner=owner,
            name=request.name,
            recipe=request.recipe,
            server=recipe_model.server,
            model=recipe_model.name,
            keep=request.keep_recipe,
        ),
    )
    batches.wake_pump(target.server.pk)
    return job


def is_large(batch: Batch) -> bool:
    """True if duplicating the job needs a confirmation."""
    return batch.wanted >= LARGE_ROWS or batch.spent_tokens >= LARGE_TOKENS


def duplicate(job: Job) -> Job:
    """Create the same job with another seed, so that it asks for other rows.

    Raises:
        WrongState: its server was removed.
    """
    batch, spec = job.batch, job.spec
    if batch.server is None:
        raise WrongState(
            "The model server of this job was removed. Start a new job with another one."
        )
    request = JobRequest(
        name=f"{job.name[:190]} (again)",
        rows=batch.wanted,
        seed=secrets.randbelow(MAX_SEED),
        recipe=spec.recipe,
        refill=batch.goal is not None,
        near=spec.filters.near,
        meaning=spec.filters.meaning,
        width=batch.width,
        weight=batch.weight,
        daily_tokens=batch.daily_tokens,
        all_servers=batch.all_servers,
        for_dataset=job.for_dataset,
        for_classifier=job.for_classifier,
    )
    copy = create_job(
        request, owner=job.owner, server=batch.server, model=batch.model, version=job.version
    )
    if spec.filters.test_set is not None:
        _copy_test_set(job, copy)
    return copy


def _copy_test_set(job: Job, copy: Job) -> None:
    key = job.spec.filters.test_set or 0
    stored = StoredRows.objects.owned_by(job.owner).filter(pk=key).first()
    if stored is None:
        return
    new = StoredRows.objects.create(
        owner=job.owner, origin=stored.origin, count=stored.count, rows=stored.rows
    )
    batches.update_spec(
        copy.batch,
        lambda spec: change_filters(spec, lambda filters: replace(filters, test_set=new.pk)),
    )
    copy.test_dataset = job.test_dataset
    copy.save(update_fields=["test_dataset"])


def delete(job: Job) -> None:
    """Delete a job with its rows and stored seed rows. Its datasets are kept."""
    stored = stored_rows_of(job.batch.spec)
    batches.delete_batch(job.batch)  # takes the job along, in pieces
    StoredRows.objects.owned_by(job.owner).filter(pk__in=stored).delete()


def rename(job: Job, name: str) -> None:
    """Rename a job, also on the Servers page."""
    job.name = name
    job.save(update_fields=["name"])
    batches.change_batch(job.batch, name=name)
