"""Quotas of a recipe: rows per value of a category column (pure)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.context import context_of
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.recipe import MAX_ROWS


def _check_quotas(quotas: Any, info: ValidationInfo) -> dict[str, dict[str, int]]:
    if quotas is None:
        return {}
    if not isinstance(quotas, Mapping):
        raise RecipeError.one("Quotas are an object: column to value to rows.")
    columns = {column.name: column for column in context_of(info).columns}
    problems = [
        Problem((name,), problem)
        for name, wanted in quotas.items()
        if (problem := _quota_problem(name, wanted, columns.get(name), context_of(info).rows))
    ]
    if problems:
        raise RecipeError(problems)
    return {name: dict(wanted) for name, wanted in quotas.items()}


def _quota_problem(name: str, wanted: Any, column: object, rows: int | None) -> str:
    if not isinstance(column, Choice):
        return f"No category column “{name}”."
    if column.depends_on:
        return f"“{name}” depends on “{column.depends_on}”. Set the quotas there."
    if column.condition:
        return f"“{name}” has a condition, so it cannot have quotas."
    if not isinstance(wanted, Mapping) or not all(
        isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_ROWS
        for count in wanted.values()
    ):
        return f"The quotas of “{name}” are an object: value to a number of rows."
    for value in wanted:
        if value not in column.values:
            return f"“{value}” is not a value of “{name}”."
    return "" if rows is None else _total_problem(name, wanted, column, rows)


def _total_problem(name: str, wanted: Mapping[str, int], column: Choice, rows: int) -> str:
    total = sum(wanted.values())
    if total > rows:
        return f"The quotas of “{name}” add up to {total:,} rows, but the job has {rows:,}."
    if total < rows and len(wanted) == len(column.values):
        return (
            f"The quotas of “{name}” add up to {total:,} rows, the job has {rows:,}: "
            "every value has a quota, so they must be equal."
        )
    return ""


Quotas = Annotated[dict[str, dict[str, int]], BeforeValidator(_check_quotas)]
"""Column to value to rows."""
