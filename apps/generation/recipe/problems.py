"""Errors of a recipe: where each is, and what to do about it (pure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import ValidationError

from apps.core.errors import DomainError

# The message names the column or the check; the page marks it as a whole.
_WHOLE_COLUMN = frozenset({"name", "values", "weights", "rows", "text", "format"})


@dataclass(frozen=True, slots=True)
class Problem:
    place: tuple[str | int, ...]
    """The path from the recipe, as in `("params", "max_tokens")`."""
    message: str

    def at(self, *outer: str | int) -> "Problem":
        """The same problem with a longer path."""
        return Problem((*[step for step in outer if step != ""], *self.place), self.message)


class RecipeError(DomainError, ValueError):
    """All problems of a recipe."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = tuple(problems)

    @classmethod
    def one(cls, message: str) -> Self:
        """Create an error with one problem of the whole value; the caller adds the place."""
        return cls([Problem((), message)])

    @classmethod
    def from_validation(cls, error: ValidationError) -> Self:
        """The problems of a model of the recipe, with the paths of its JSON."""
        return cls(list(_problems_of(error)))


def _problems_of(error: ValidationError) -> Iterator[Problem]:
    for detail in error.errors(include_url=False, include_input=False):
        place = _place(detail["loc"])
        inner = detail.get("ctx", {}).get("error")
        if isinstance(inner, RecipeError):
            yield from (problem.at(*place) for problem in inner.problems)
        elif detail["type"] == "extra_forbidden":
            yield Problem(place, "Unknown recipe key.")
        else:
            yield Problem(place, f"{detail['msg']}.")


def _place(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The path without the column's kind, which pydantic puts behind its number."""
    steps = [*loc[:2], *loc[3:]] if loc[:1] == ("columns",) else [*loc]
    if "checks" in steps:
        return tuple(steps[: steps.index("checks") + 2])
    if len(steps) > 1 and steps[0] in {"columns", "attributes"} and steps[-1] in _WHOLE_COLUMN:
        steps = [*steps[:2]] if steps[0] == "attributes" else [*steps[:-1]]
    return tuple(steps)
