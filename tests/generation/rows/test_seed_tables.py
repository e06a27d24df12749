"""Seed rows and test rows, read from their source and stored with a job."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation.models import StoredRows
from apps.generation.recipe.columns import seed_rows
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows.seed_tables import (
    load_tables,
    load_test_table,
    store_table,
    with_stored_rows,
)

pytestmark = pytest.mark.django_db


def recipe_of(**seed: Any) -> Recipe:
    columns = [
        {"name": "topic", "values": ["a", "b"]},
        {"name": "like", "kind": "seed", **seed},
        {"name": "text", "kind": "text", "prompt": "Write one like {{ like }}."},
    ]
    return parse({"columns": columns})


def dataset_of(owner: User, *splits: str) -> Dataset:
    rows = [ExampleRow(f"Text {n}", "x", split) for n, split in enumerate(splits)]
    return create_dataset(owner=owner, name="Mails", rows=rows, origin="x")


def problem_of(owner: User, recipe: Recipe) -> tuple[Any, str]:
    with pytest.raises(RecipeError) as raised:
        load_tables(owner, recipe)
    [problem] = raised.value.problems
    return problem.place, problem.message


def test_rows_of_the_recipe(alice: User) -> None:
    tables = load_tables(alice, recipe_of(rows=["A", "B"]))
    assert {name: table.texts for name, table in tables.items()} == {"like": ["A", "B"]}


def test_a_recipe_without_seed_rows(alice: User) -> None:
    assert load_tables(alice, parse({"prompt": "Write."})) == {}


def test_rows_of_a_dataset_without_its_test_rows(alice: User) -> None:
    dataset = dataset_of(alice, "train", "test", "")
    table = load_tables(alice, recipe_of(dataset=dataset.pk))["like"]
    assert list(table.rows) == [{"text": "Text 0", "label": "x"}, {"text": "Text 2", "label": "x"}]


def test_someone_elses_dataset_is_not_there(alice: User, bob: User) -> None:
    found = problem_of(bob, recipe_of(dataset=dataset_of(alice, "train").pk))
    assert found[0] == ("columns", 1, "dataset")
    assert "No such dataset" in found[1]


def test_a_dataset_of_test_rows_is_no_source(alice: User) -> None:
    found = problem_of(alice, recipe_of(dataset=dataset_of(alice, "test").pk))
    assert found == (("columns", 1, "dataset"), "“Mails” has only test rows.")


def test_a_dataset_that_is_too_large(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_rows, "MAX_ROWS", 2)
    dataset = dataset_of(alice, "", "", "")
    _, message = problem_of(alice, recipe_of(dataset=dataset.pk))
    assert message == "“Mails” has 3 rows; the limit is 2."
    with pytest.raises(RecipeError, match="has more than 2 rows to compare with"):
        load_test_table(dataset)


@pytest.mark.parametrize(
    ("splits", "texts"),
    [
        (("train", "test", ""), ["Text 1"]),
        (("train", ""), ["Text 0", "Text 1"]),
        (("test", "test"), ["Text 0", "Text 1"]),
    ],
)
def test_test_rows_are_those_of_the_split_or_all(
    alice: User, splits: tuple[str, ...], texts: list[str]
) -> None:
    assert load_test_table(dataset_of(alice, *splits)).texts == texts


def test_stored_rows_are_read_again_by_their_owner(alice: User, bob: User) -> None:
    table = Table([{"text": "A"}, {"text": "B"}])
    key = store_table(alice, table, "x" * 400)
    stored = StoredRows.objects.get(pk=key)
    assert (stored.count, len(stored.origin), str(stored)[:8]) == (2, 300, "2 rows: ")
    recipe = with_stored_rows(recipe_of(rows=["A", "B"]), {"like": key})
    assert load_tables(alice, recipe)["like"].texts == ["A", "B"]
    assert problem_of(bob, recipe)[1] == "The seed rows no longer exist."


def test_a_recipe_with_stored_rows_has_the_same_fields() -> None:
    before = recipe_of(rows=[{"title": "A", "body": "B"}])
    after = with_stored_rows(before, {"like": 7})
    assert after.field_names == before.field_names
    column = after.columns[1]
    assert isinstance(column, Seed)
    assert (column.stored, column.rows) == (7, None)
    assert with_stored_rows(before, {"other": 7}) == before
