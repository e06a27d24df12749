"""Reads recipes from their JSON and writes them back (pure)."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from apps.generation.recipe.body import RecipeBody
from apps.generation.recipe.columns.choices import Persona
from apps.generation.recipe.columns.context import ParseContext
from apps.generation.recipe.columns.written import Answer
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import Recipe

MAX_DEPTH = 100  # objects and lists in each other


def parse(data: Any, *, rows: int | None = None, stored: bool = False) -> Recipe:
    """The recipe of a JSON value, checked in every part.

    Args:
        rows: number of rows of the job, to compare the quotas with.
        stored: also read a recipe that contradicts itself, so that its job can be opened.

    Raises:
        RecipeError: with every problem and its place.
    """
    _check_depth(data)
    context = ParseContext(rows, is_new=not stored)
    try:
        return RecipeBody.model_validate(data, context=context).to_recipe(context)
    except ValidationError as error:
        raise RecipeError.from_validation(error) from error


def _check_depth(data: Any) -> None:
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, Mapping | list)
            for inner in (value.values() if isinstance(value, Mapping) else value)
        ]
        if not level:
            return
    raise RecipeError.one(f"The recipe is nested too deeply. The limit is {MAX_DEPTH} levels.")


def to_json(recipe: Recipe) -> dict[str, Any]:
    """The recipe as it is stored and as `parse` reads it."""
    quotas = {column.name: dict(column.quotas) for column in recipe.categories if column.quotas}
    last = recipe.columns[-1]
    if isinstance(last, Answer) and recipe.is_plain and _only_attributes(recipe):
        body: dict[str, Any] = {
            "prompt": last.prompt,
            "attributes": {column.name: list(column.values) for column in recipe.categories},
        }
    elif isinstance(last, Answer):
        columns = [column.to_json() for column in recipe.columns[:-1]]
        body = {"columns": columns, "prompt": last.prompt}
    else:
        body = {"columns": [column.to_json() for column in recipe.columns]}
    if isinstance(last, Answer):
        body |= {
            name: value
            for name, value in (
                ("schema", last.row_schema),
                ("checks", [check.to_json() for check in last.checks]),
                ("candidates", last.candidates if last.candidates > 1 else None),
            )
            if value
        }
    return {
        "system": recipe.system,
        **body,
        **({"quotas": quotas} if quotas else {}),
        "params": dict(recipe.params),
    }


def long_form(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe in the API's words with all it has in `columns`, as the editor shows it."""
    columns: list[dict[str, Any]] = [
        {"name": name, "kind": "category", "values": list(values)}
        for name, values in (data.get("attributes") or {}).items()
    ]
    columns += [{"kind": "category", **column} for column in data.get("columns") or []]
    if data.get("prompt"):
        written = {
            name: data[name]
            for name in ("prompt", "schema", "checks", "candidates")
            if name in data
        }
        kind = (
            {"name": "row", "kind": "structured"}
            if data.get("schema")
            else {
                "name": "text",
                "kind": "text",
            }
        )
        columns.append({**kind, **written})
    kept = {name: data[name] for name in ("system", "quotas", "params") if data.get(name)}
    return {"system": "", **kept, "columns": columns}


def column_names(data: Mapping[str, Any]) -> list[str]:
    """The names of a recipe's columns, in order."""
    return [str(column.get("name", "")) for column in long_form(data)["columns"]]


def _only_attributes(recipe: Recipe) -> bool:
    """True if the short form loses nothing."""
    return all(
        not (column.depends_on or column.options.weights or isinstance(column, Persona))
        and not column.condition
        and column.keep
        for column in recipe.categories
    )
