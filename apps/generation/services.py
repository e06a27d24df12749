"""Jobs: create, duplicate, rename and delete them. The door of this room."""

import secrets
from collections.abc import Callable
from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Batch
from apps.batch.services import create_batch
from apps.datasets.models import Dataset
from apps.generation.models import Job, RecipeVersion, StoredRows
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts.prompt_size import prompt_tokens
from apps.generation.recipe.recipe import MAX_SEED, Recipe
from apps.generation.recipe.spec import HANDLER, Filters, Spec, change_filters, stored_rows_of
from apps.generation.review.row_comparison import MEANING_ROWS
from apps.generation.rows.seed_tables import (
    load_tables,
    load_test_table,
    store_table,
    with_stored_rows,
)
from apps.servers.models import Server, Use
from apps.servers.services import NoServer, default_target

LARGE_ROWS = 500
LARGE_TOKENS = 200_000


def create_job(
    *,
    owner: User,
    name: str,
    rows: int,
    seed: int,
    recipe: Recipe,
    server: Server,
    model: str = "",
    refill: bool = False,
    near: float | None = None,
    meaning: float | None = None,
    test_dataset: Dataset | None = None,
    width: int | None = None,
    weight: int = 1,
    daily_tokens: int | None = None,
    all_servers: bool = False,
    version: RecipeVersion | Callable[[], RecipeVersion] | None = None,
    for_dataset: Dataset | None = None,
    for_classifier: int | None = None,
) -> Job:
    """Create a queued job with its pending rows. The caller wakes the pump.

    Args:
        refill: go on until `rows` are accepted, quotas kept, or the yield is too low.
        near: reject a row that has this share of its 5-grams in common with another.
        meaning: reject a row whose embedding has this cosine with that of another.
        test_dataset: reject a row that repeats one of its texts.
        all_servers: every server with the same model works on it.
        version: of its recipe, or what makes it: a job that is refused leaves none.
        for_dataset, for_classifier: what its rows are meant to make better.

    Raises:
        RecipeError: the rows that a seed column names are not there, or rows cannot be compared by
            meaning.
    """
    tables = load_tables(owner, recipe)
    tests = None if test_dataset is None else load_test_table(test_dataset)
    if meaning is not None:
        others = [*tables.values()] if tests is None else [*tables.values(), tests]
        _check_meaning(rows + sum(len(table.rows) for table in others))
    tokens = prompt_tokens(recipe, tables)
    # What was read above may be large: nobody else who writes waits for it.
    with transaction.atomic():
        stored = {name: store_table(owner, table, name) for name, table in tables.items()}
        test_set = None
        if test_dataset is not None and tests is not None:
            test_set = store_table(owner, tests, test_dataset.name)
        kept = with_stored_rows(recipe, stored)
        spec = Spec(
            kept,
            seed,
            recipe.system_message,
            stored,
            Filters(near, test_set, meaning),
            tokens,
        )
        batch = create_batch(
            owner=owner,
            server=server,
            name=name,
            model=model,
            handler=HANDLER,
            spec=spec.as_dict(),
            inputs=rows,  # a row's index says which it is: the recipe does the rest
            weight=weight,
            refill=refill,
            width=width,
            daily_tokens=daily_tokens,
            all_servers=all_servers,
            may_fall_back=True,
        )
        return Job.objects.create(
            owner=owner,
            name=name,
            batch=batch,
            version=version() if callable(version) else version,
            test_dataset=test_dataset.name if test_dataset is not None else "",
            for_dataset=for_dataset,
            for_classifier=for_classifier,
        )


def _check_meaning(texts: int) -> None:
    """Check that texts can be compared by meaning, and not too many."""
    try:
        default_target(Use.EMBEDDINGS)
    except NoServer as error:
        message = f"Comparing by meaning needs an embedding server. {error}"
        raise RecipeError([Problem(("meaning",), message)]) from error
    if texts > MEANING_ROWS:
        message = (
            f"Comparing by meaning is limited to {MEANING_ROWS:,} texts, seed rows and test set "
            f"included. This job has {texts:,}. Compare by text instead."
        )
        raise RecipeError([Problem(("meaning",), message)])


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
    copy = create_job(
        owner=job.owner,
        name=f"{job.name[:190]} (again)",
        rows=batch.wanted,
        seed=secrets.randbelow(MAX_SEED),
        recipe=spec.recipe,
        server=batch.server,
        model=batch.model,
        refill=batch.goal is not None,
        near=spec.filters.near,
        meaning=spec.filters.meaning,
        width=batch.width,
        weight=batch.weight,
        daily_tokens=batch.daily_tokens,
        all_servers=batch.all_servers,
        version=job.version,
        for_dataset=job.for_dataset,
        for_classifier=job.for_classifier,
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
