"""What is wrong with a recipe: where and what to do about it (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Problem:
    place: tuple[str | int, ...]
    """The way to it from the recipe, as in `("params", "max_tokens")`."""
    message: str

    def at(self, *outer: str | int) -> "Problem":
        """The same problem seen from further out."""
        return Problem((*[step for step in outer if step != ""], *self.place), self.message)


class RecipeError(ValueError):
    """All that is wrong with a recipe."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = tuple(problems)

    @classmethod
    def of(cls, message: str) -> Self:
        return cls([Problem((), message)])
