"""What is well written and can never make the rows that are meant (pure).

Held against new recipes alone: the job of an old one can still be opened.
"""

from collections.abc import Iterator, Sequence

from apps.core.schemas import json_schemas
from apps.generation.recipe.columns.columns import Answer, Category, Column, Structured
from apps.generation.recipe.problems import Problem

SHOWN = 5


def contradictions(columns: Sequence[Column]) -> Iterator[Problem]:
    """Each with its place in the recipe."""
    known = {column.name: column for column in columns}
    for at, column in enumerate(columns):
        if isinstance(column, Structured | Answer) and column.row_schema is not None:
            place: tuple[str | int, ...] = ("columns", at, "schema")
            if isinstance(column, Answer):
                place = ("schema",)
            if problem := json_schemas.contradiction(column.row_schema):
                yield Problem(place, problem)
        parent = known.get(column.depends_on) if isinstance(column, Category) else None
        if isinstance(column, Category) and isinstance(parent, Category):
            missing = [value for value in parent.values if value not in column.branches]
            unknown = [value for value in column.branches if value not in parent.values]
            if missing:
                hint = f" “{unknown[0]}” is not a value of “{parent.name}”." if unknown else ""
                message = f"No values for {_listed(missing)} of “{parent.name}”.{hint}"
                yield Problem(("columns", at, "values"), message)


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(f"“{value}”" for value in values[:SHOWN])
    more = len(values) - SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
