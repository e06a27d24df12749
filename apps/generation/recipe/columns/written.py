"""Columns that the model writes, in the API's words (pure)."""

from collections.abc import Mapping
from typing import Any

from apps.generation.recipe import params
from apps.generation.recipe.columns import checks, schemas
from apps.generation.recipe.columns import parse_fields as parts
from apps.generation.recipe.columns.checks import Check
from apps.generation.recipe.columns.columns import (
    JUDGE_PROMPT,
    Column,
    Criterion,
    Judge,
    Structured,
    Text,
    Written,
)
from apps.generation.recipe.columns.parse_fields import Data, Names
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates

MAX_CANDIDATES = 10
MAX_CRITERIA = 10


def text(data: Data, names: Names, common: Data) -> Column:
    return Text(**common, **_written(data, names))


def structured(data: Data, names: Names, common: Data) -> Column:
    if not data.get("schema"):
        raise RecipeError([Problem(("schema",), "Add at least one field.")])
    schema = parts.at("schema", schemas.checked, data["schema"])
    for name in schemas.field_names(schema):
        parts.at("schema", templates.check_name, name)
    return Structured(**common, **_written(data, names), row_schema=schema)


def judge(data: Data, names: Names, common: Data) -> Column:
    given = data.get("criteria")
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_CRITERIA:
        message = f"A judge needs 1 to {MAX_CRITERIA} criteria."
        raise RecipeError([Problem(("criteria",), message)])
    criteria = tuple(_criterion(at, value) for at, value in enumerate(given))
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise RecipeError([Problem(("criteria",), "Two criteria have the same name.")])
    told = {**data, "prompt": data.get("prompt") or JUDGE_PROMPT}
    told["params"] = {"temperature": 0.0, "max_tokens": 200, **(data.get("params") or {})}
    return Judge(**common, **_written(told, names), criteria=criteria)


def _criterion(at: int, data: Any) -> Criterion:
    place = ("criteria", at)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise RecipeError([Problem(place, "A criterion needs a name and a description.")])
    try:
        templates.check_name(data["name"])
        for unknown in data.keys() - {"name", "description", "max", "at_least"}:
            raise RecipeError.of(f"Unknown criterion key “{unknown}”.")
        largest = parts.whole(data, "max", 5, 2, 100)
        return Criterion(
            data["name"],
            parts.text(data, "description").strip(),
            largest,
            parts.whole(data, "at_least", 0, 0, largest),
        )
    except RecipeError as error:
        raise RecipeError([problem.at(*place) for problem in error.problems]) from error


def _written(data: Data, names: Names) -> dict[str, Any]:
    return {
        "prompt": parts.at("prompt", prompt, data.get("prompt"), names),
        "params": parts.at("params", params.read, data.get("params")),
        "checks": parts.at("checks", checks_of, data),
        "candidates": parts.at("candidates", candidates_of, data),
    }


def prompt(source: Any, names: Names) -> str:
    if not isinstance(source, str) or not source.strip():
        raise RecipeError.of("Enter a prompt: what should the model write for each row?")
    templates.check(source, names)
    return source


def checks_of(data: Data) -> tuple[Check, ...]:
    given = data.get("checks") or []
    if not isinstance(given, list) or len(given) > checks.MAX_CHECKS:
        raise RecipeError.of(f"Checks must be a list of up to {checks.MAX_CHECKS}.")
    found = []
    for at, check in enumerate(given):
        try:
            found.append(checks.read(check))
        except RecipeError as error:
            raise RecipeError([problem.at(at) for problem in error.problems]) from error
    return tuple(found)


def candidates_of(data: Data) -> int:
    value = data.get("candidates", 1)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CANDIDATES:
        raise RecipeError.of(f"Must be a whole number from 1 to {MAX_CANDIDATES}.")
    return value


def check_fields(column: Written, names: Names) -> None:
    """That the checks name fields and columns that are there."""
    for check in column.checks:
        if check.field and check.field not in column.names:
            message = f"A check uses the field “{check.field}”, which does not exist."
            raise RecipeError([Problem(("checks",), message)])
        if check.kind == "expression":
            templates.check_expression(check.text, names)
        elif check.kind in {"contains", "lacks"} and "{{" in check.text:
            templates.check(check.text, names)
