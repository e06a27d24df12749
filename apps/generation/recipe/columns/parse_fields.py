"""What the forms of columns read of JSON, each with a sentence for what is wrong (pure)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apps.generation.recipe.problems import Problem, RecipeError

MAX_NUMBER = 10**12

Names = Sequence[str] | None
"""The columns before this one; None where that is not known for an earlier mistake."""
Data = Mapping[str, Any]


def at(place: str, check: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return check(*arguments)
    except RecipeError as error:
        raise RecipeError([problem.at(place) for problem in error.problems]) from error


def text(data: Data, name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise RecipeError([Problem((name,), "Must be a string.")])
    return value


def number(data: Data, name: str, default: float | None = None) -> float:
    value = data.get(name, default)
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not -MAX_NUMBER <= value <= MAX_NUMBER
    ):
        raise RecipeError([Problem((name,), "Must be a number.")])
    return value


def whole(data: Data, name: str, default: int, smallest: int, largest: int) -> int:
    value = data.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value <= largest:
        message = f"Must be an integer from {smallest:,} to {largest:,}."
        raise RecipeError([Problem((name,), message)])
    return value


def earlier(data: Data, name: str, names: Names) -> str:
    """The name of an earlier column, or nothing."""
    value = text(data, name)
    if value and names is not None and value not in names:
        there = ", ".join(names) or "none"
        message = f"No column “{value}” above this one. Columns above: {there}."
        raise RecipeError([Problem((name,), message)])
    return value
