"""Seed rows and test rows of a job: read from their source, stored with the job."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from apps.datasets.models import Dataset, Split
from apps.generation.job_request import JobRequest
from apps.generation.models import StoredRows
from apps.generation.recipe.columns import seed_rows
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts.prompt_size import prompt_tokens
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Filters, Spec
from apps.generation.review.row_comparison import MEANING_ROWS
from apps.servers.models import Use
from apps.servers.services import NoServer, default_target


@dataclass(frozen=True)
class JobSources:
    tables: Mapping[str, Table]
    """Seed rows, by the name of their column."""
    tests: Table | None
    test_name: str
    prompt_tokens: int
    """Of the prompts of one row, filled with these seed rows."""


def read_sources(request: JobRequest, owner: User) -> JobSources:
    """Read the seed rows and the test set that a job asks for.

    Raises:
        Dataset.DoesNotExist: the owner has no such test dataset.
        RecipeError: seed rows are not there, or rows cannot be compared by meaning.
    """
    tests, test_name = None, ""
    if request.test_dataset is not None:
        dataset = Dataset.objects.owned_by(owner).get(pk=request.test_dataset)
        tests, test_name = load_test_table(dataset), dataset.name
    tables = load_tables(owner, request.recipe)
    if request.meaning is not None:
        others = [*tables.values(), *([] if tests is None else [tests])]
        _check_meaning(request.rows + sum(len(table.rows) for table in others))
    return JobSources(tables, tests, test_name, prompt_tokens(request.recipe, tables))


def store_spec(request: JobRequest, owner: User, sources: JobSources) -> Spec:
    """Store the sources, and return the spec that names them."""
    recipe, tests = request.recipe, sources.tests
    stored = {name: store_table(owner, table, name) for name, table in sources.tables.items()}
    test_set = None if tests is None else store_table(owner, tests, sources.test_name)
    return Spec(
        with_stored_rows(recipe, stored),
        request.seed,
        recipe.system_message,
        stored,
        Filters(request.near, test_set, request.meaning),
        sources.prompt_tokens,
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
