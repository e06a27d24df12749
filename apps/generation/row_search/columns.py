"""The columns of a recipe that rows can be filtered and sorted by (pure)."""

from dataclasses import dataclass

from apps.generation.recipe.columns.judge import Criterion, Judge
from apps.generation.recipe.recipe import Recipe

MAX_LISTED_VALUES = 100


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """A column with few values, all known; of a score these are all scores."""

    name: str
    values: tuple[str, ...]
    is_score: bool = False


def filter_columns(recipe: Recipe) -> list[FilterColumn]:
    """Return the columns that rows can be filtered by, in the order of the recipe, scores last."""
    found = [
        FilterColumn(column.name, column.values)
        for column in recipe.categories
        if column.keep and len(column.values) <= MAX_LISTED_VALUES
    ]
    for column in recipe.written:
        if isinstance(column, Judge) or column.answer_schema is None:
            continue
        for name, inner in column.answer_schema["properties"].items():
            if name in column.fields and all(isinstance(v, str) for v in inner.get("enum", [0])):
                found.append(FilterColumn(name, tuple(inner["enum"])))
    return found + [
        FilterColumn(each.name, tuple(map(str, range(1, each.largest + 1))), is_score=True)
        for each in criteria_of(recipe)
    ]


def criteria_of(recipe: Recipe) -> list[Criterion]:
    """Return the scores that the judges of a recipe give."""
    judges = [column for column in recipe.written if isinstance(column, Judge) and column.keep]
    return [criterion for judge in judges for criterion in judge.criteria]
