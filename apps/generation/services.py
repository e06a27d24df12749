"""Starting jobs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.batch.services import create_batch
from apps.datasets.models import Dataset
from apps.generation import recipe as recipes
from apps.generation import seeds
from apps.generation.columns import Seed
from apps.generation.models import Job, StoredRows
from apps.generation.plan import Recipe
from apps.generation.problems import Problem, RecipeError
from apps.generation.seeds import Table
from apps.generation.spec import HANDLER, Filters, Spec
from apps.llm.models import Server


@transaction.atomic
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
    test_dataset: Dataset | None = None,
    width: int | None = None,
    weight: int = 1,
    daily_tokens: int | None = None,
) -> Job:
    """A queued job with its pending rows. `apps.batch.tasks.wake` sends the pump to it.

    Args:
        refill: go on until `rows` are accepted, quotas kept, or the yield is too low.
        near: reject a row that has this share of its 5-grams in common with another.
        test_dataset: reject a row that repeats one of its texts.

    Raises:
        RecipeError: the rows that a seed column names are not there.
    """
    tables = tables_of(owner, recipe)
    stored = {name: _store(owner, table, name) for name, table in tables.items()}
    test_set = None
    if test_dataset is not None:
        table = _dataset_table(test_dataset)
        test_set = _store(owner, table, test_dataset.name)
    spec = Spec(recipe, seed, recipe.system_message, stored, Filters(near, test_set))
    batch = create_batch(
        owner=owner,
        server=server,
        model=model,
        handler=HANDLER,
        spec=spec.as_dict(),
        inputs=[None] * rows,  # a row's input is its index: the recipe does the rest
        weight=weight,
        refill=refill,
        width=width,
        daily_tokens=daily_tokens,
    )
    return Job.objects.create(owner=owner, name=name, batch=batch)


# --- Seed rows ----------------------------------------------------------------


def tables_of(owner: User, recipe: Recipe) -> dict[str, Table]:
    """The rows of each seed column, as they are now.

    Raises:
        RecipeError: a dataset is not there (any more), or is empty.
    """
    tables: dict[str, Table] = {}
    for at, column in enumerate(recipe.columns):
        if isinstance(column, Seed):
            try:
                tables[column.name] = _table(owner, column.source)
            except RecipeError as error:
                raise RecipeError([p.at("columns", at) for p in error.problems]) from error
    return tables


def _table(owner: User, source: Mapping[str, Any]) -> Table:
    if source.get("stored") is not None:
        stored = StoredRows.objects.owned_by(owner).filter(pk=source["stored"]).first()
        if stored is None:
            raise RecipeError([Problem(("stored",), "Its seed rows are not there any more.")])
        return Table(stored.rows)
    if source.get("dataset") is not None:
        dataset = Dataset.objects.owned_by(owner).filter(pk=source["dataset"]).first()
        if dataset is None:
            raise RecipeError([Problem(("dataset",), "There is no such dataset of yours.")])
        return _dataset_table(dataset)
    return seeds.read(source)


def _dataset_table(dataset: Dataset) -> Table:
    if dataset.rows > seeds.MAX_ROWS:
        message = f"“{dataset.name}” has {dataset.rows:,} rows; at most {seeds.MAX_ROWS:,}."
        raise RecipeError([Problem(("dataset",), message)])
    rows = dataset.examples.order_by("index").values("text", "label")
    return Table([{"text": row["text"], "label": row["label"]} for row in rows])


def _store(owner: User, table: Table, origin: str) -> int:
    stored = StoredRows.objects.create(
        owner=owner, origin=origin[:300], count=len(table.rows), rows=list(table.rows)
    )
    return stored.pk


def with_stored_rows(recipe: Recipe, stored: Mapping[str, int]) -> Recipe:
    """A job's recipe for another job: its seed rows are the ones that were stored."""
    columns = tuple(
        replace(column, source={**_without_rows(column), "stored": stored[column.name]})
        if isinstance(column, Seed) and column.name in stored
        else column
        for column in recipe.columns
    )
    return replace(recipe, columns=columns)


def _without_rows(column: Seed) -> dict[str, Any]:
    """A seed column as it is stored: where its rows came from, not the rows."""
    kept = {
        name: value
        for name, value in column.source.items()
        if name not in {"rows", "text", "format", "stored"}
    }
    return {**kept, "fields": list(column.row_fields)}


def parse(data: Mapping[str, Any], *, rows: int | None = None) -> Recipe:
    return recipes.parse(data, rows=rows)
