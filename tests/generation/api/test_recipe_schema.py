"""The recipe in the OpenAPI document: all of its fields, and true."""

from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from apps.generation.recipe.columns.any_column import KINDS
from apps.generation.recipe.library.starters import STARTERS, more_like
from apps.generation.recipe.parse import parse, to_json
from tests.generation.recipe.columns.test_columns import LONG
from tests.generation.recipe.strategies import recipes
from tests.generation.recipe.test_parse import REVIEWS
from workbench.api import api

DOCUMENT: dict[str, Any] = dict(api.get_openapi_schema())
COMPONENTS = DOCUMENT["components"]["schemas"]
RECIPE = Draft202012Validator(
    {"$ref": "#/components/schemas/RecipeBody", "components": {"schemas": COMPONENTS}}
)


@pytest.mark.parametrize("body", ["JobIn", "JobOut"])
def test_a_job_has_the_documented_recipe(body: str) -> None:
    assert COMPONENTS[body]["properties"]["recipe"]["$ref"].endswith("/RecipeBody")


def test_the_recipe_has_all_its_keys() -> None:
    recipe = COMPONENTS["RecipeBody"]
    assert set(recipe["properties"]) == {
        *("system", "prompt", "schema", "attributes", "columns", "quotas", "params", "checks"),
        "candidates",
    }
    assert recipe["additionalProperties"] is False


def test_column_schema_is_discriminated_by_kind() -> None:
    items = COMPONENTS["RecipeBody"]["properties"]["columns"]["items"]
    assert items["discriminator"]["propertyName"] == "kind"
    assert set(items["discriminator"]["mapping"]) == set(KINDS)
    assert len(items["oneOf"]) == len(KINDS)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("Category", {"values", "weights", "depends_on"}),
        ("Persona", {"values", "about"}),
        ("Number", {"min", "max", "decimals", "mean", "deviation"}),
        ("Date", {"from", "to", "time"}),
        ("Uuid", set()),
        (
            "Seed",
            {
                *("dataset", "rows", "text", "format", "fields", "stored", "order", "count"),
                *("match", "match_field", "template"),
            },
        ),
        ("Expression", {"expression"}),
        ("Text", {"prompt", "params", "checks", "candidates"}),
        ("Structured", {"prompt", "params", "checks", "candidates", "schema"}),
        ("Judge", {"prompt", "params", "criteria"}),
    ],
)
def test_each_kind_has_its_keys(kind: str, keys: set[str]) -> None:
    assert set(COMPONENTS[kind]["properties"]) == keys | {"name", "kind", "condition", "keep"}


@pytest.mark.parametrize(
    "recipe", [REVIEWS, LONG, *(starter.recipe for starter in STARTERS), more_like(1, ["a"], 5)]
)
def test_the_document_allows_every_ready_recipe(recipe: dict[str, Any]) -> None:
    RECIPE.validate(recipe)
    RECIPE.validate(to_json(parse(recipe)))


@given(recipes())
@settings(max_examples=40)
def test_the_document_allows_what_is_accepted(recipe: dict[str, Any]) -> None:
    RECIPE.validate(recipe)
    RECIPE.validate(to_json(parse(recipe)))


@pytest.mark.parametrize(
    "recipe",
    [
        {"prompt": "x", "colour": 1},
        {"columns": [{"name": "a", "kind": "magic"}]},
        {"columns": [{"name": "a", "kind": "number", "min": "x", "max": 1}]},
        {"columns": [{"name": "a", "kind": "uuid", "values": ["x"]}]},
        {"prompt": "x", "params": {"temperature": 9}},
        {"prompt": "x", "checks": [{"kind": "magic"}]},
    ],
)
def test_the_document_forbids_what_is_refused(recipe: dict[str, Any]) -> None:
    assert not RECIPE.is_valid(recipe)
