"""Rows that a job is made from or must not repeat: read before it is created, stored with it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User

from apps.datasets.models import Dataset
from apps.generation.job_request import JobRequest
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts.prompt_size import prompt_tokens
from apps.generation.recipe.spec import Filters, Spec
from apps.generation.review.row_comparison import MEANING_ROWS
from apps.generation.rows.seed_tables import (
    load_tables,
    load_test_table,
    store_table,
    with_stored_rows,
)
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
