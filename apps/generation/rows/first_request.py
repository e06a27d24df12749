"""The first request of a row, without a job (pure)."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows import samplers
from apps.generation.rows.row_steps import first_ask
from apps.generation.rows.samplers import RowSeed


@dataclass(frozen=True, slots=True)
class RowPrompt:
    """A row's first request. `values` are those of its columns that no model writes."""

    messages: tuple[dict[str, str], ...]
    values: dict[str, str]
    seed: int


def render_row(recipe: Recipe, index: int, seed: int) -> RowPrompt:
    """The first request of row `index`, of a recipe without seed rows.

    Raises:
        RecipeError: the prompt is too long or empty.
    """
    ask = first_ask(recipe, RowSeed(index, seed))
    return RowPrompt(ask.messages, row_values(recipe, index, seed), ask.seed)


def row_values(
    recipe: Recipe, index: int, seed: int, stands_for: int | None = None
) -> dict[str, Any]:
    """The category columns of row `index`, of a recipe that begins with these.

    Args:
        stands_for: as in `RowSeed`: the row it replaces, whose quota it takes over.
    """
    values: dict[str, Any] = {}
    row_seed = RowSeed(index, seed, stands_for)
    for column in recipe.categories:
        if column.condition and not templates.evaluate(column.condition, values):
            values[column.name] = None
        else:
            with suppress(RecipeError):  # old jobs have values without options
                values[column.name] = ""
                samplers.sample_column(column, row_seed, values)
    return values
