"""Seed rows and test rows of a job: read from their source, stored with the job."""

from collections.abc import Mapping
from dataclasses import replace

from django.contrib.auth.models import User

from apps.datasets.models import Dataset, Split
from apps.generation.models import StoredRows
from apps.generation.recipe.columns import seed_rows
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.recipe import Recipe


def load_tables(owner: User, recipe: Recipe) -> dict[str, Table]:
    """Load the current rows of each seed column.

    Raises:
        RecipeError: a dataset does not exist, or is empty.
    """
    tables: dict[str, Table] = {}
    for at, column in enumerate(recipe.columns):
        if isinstance(column, Seed):
            try:
                tables[column.name] = _table(owner, column)
            except RecipeError as error:
                raise RecipeError([p.at("columns", at) for p in error.problems]) from error
    return tables


def _table(owner: User, column: Seed) -> Table:
    if column.stored is not None:
        stored = StoredRows.objects.owned_by(owner).filter(pk=column.stored).first()
        if stored is None:
            raise RecipeError([Problem(("stored",), "The seed rows no longer exist.")])
        return Table(stored.rows)
    if column.dataset is not None:
        dataset = Dataset.objects.owned_by(owner).filter(pk=column.dataset).first()
        if dataset is None:
            raise RecipeError(
                [Problem(("dataset",), "No such dataset, or you do not have access to it.")]
            )
        return _dataset_table(dataset)
    return column.table


def _dataset_table(dataset: Dataset) -> Table:
    if dataset.rows > seed_rows.MAX_ROWS:
        message = (
            f"“{dataset.name}” has {dataset.rows:,} rows; the limit is {seed_rows.MAX_ROWS:,}."
        )
        raise RecipeError([Problem(("dataset",), message)])
    # Test rows are never examples: they would leak.
    rows = dataset.examples.exclude(split=Split.TEST).order_by("index").values("text", "label")
    if not rows:
        raise RecipeError([Problem(("dataset",), f"“{dataset.name}” has only test rows.")])
    return Table([{"text": row["text"], "label": row["label"]} for row in rows])


def load_test_table(dataset: Dataset) -> Table:
    """Load the test rows of a dataset; all rows if none is marked as test."""
    rows = dataset.examples.order_by("index")
    if dataset.test_rows:
        rows = rows.filter(split=Split.TEST)
    if rows.count() > seed_rows.MAX_ROWS:
        message = f"“{dataset.name}” has more than {seed_rows.MAX_ROWS:,} rows to compare with."
        raise RecipeError([Problem(("test_dataset",), message)])
    return Table([{"text": text} for text in rows.values_list("text", flat=True)])


def store_table(owner: User, table: Table, origin: str) -> int:
    stored = StoredRows.objects.create(
        owner=owner, origin=origin[:300], count=len(table.rows), rows=list(table.rows)
    )
    return stored.pk


def with_stored_rows(recipe: Recipe, stored: Mapping[str, int]) -> Recipe:
    """Return the recipe with its seed rows replaced by the stored ones."""
    columns = tuple(
        column.with_stored_rows(stored[column.name])
        if isinstance(column, Seed) and column.name in stored
        else column
        for column in recipe.columns
    )
    return replace(recipe, columns=columns)
