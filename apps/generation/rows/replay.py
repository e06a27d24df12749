"""Rows without a model: first request, sampled values, rows from stored replies (pure)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows import samplers
from apps.generation.rows.row_steps import Reply, Row, RowRequest, row_steps
from apps.generation.rows.samplers import RowSeed, Values


@dataclass(frozen=True, slots=True)
class RowPrompt:
    """First request of a row. `values` are those of its sampled columns."""

    messages: tuple[dict[str, str], ...]
    values: Values
    seed: int


def render_row(recipe: Recipe, index: int, seed: int) -> RowPrompt:
    """Build the first request of row `index`, of a recipe without seed rows.

    Raises:
        RecipeError: the prompt is too long or empty.
    """
    request = first_request(recipe, RowSeed(index, seed))
    return RowPrompt(request.messages, row_values(recipe, index, seed), request.seed)


def first_request(recipe: Recipe, row_seed: RowSeed) -> RowRequest:
    """
    Raises:
        RecipeError: it cannot be built.
    """
    steps = row_steps(recipe, row_seed)
    try:
        return next(steps)
    except StopIteration as end:
        row: Row = end.value
        raise RecipeError.one(
            row.reason or "This recipe has no column written by the model."
        ) from None
    finally:
        steps.close()


def row_values(recipe: Recipe, index: int, seed: int, replaces: int | None = None) -> Values:
    """Sample the category columns of row `index`, of a recipe that begins with these.

    Args:
        replaces: the row whose quota it takes over, as in `RowSeed`.
    """
    values: Values = {}
    row_seed = RowSeed(index, seed, replaces)
    for column in recipe.categories:
        if column.condition and not templates.evaluate(column.condition, values):
            values[column.name] = None
        else:
            with suppress(RecipeError):  # old jobs have values without options
                values[column.name] = ""
                samplers.sample_column(column, row_seed, values)
    return values


def rebuild_row(recipe: Recipe, row_seed: RowSeed, replies: Sequence[str]) -> tuple[Row, int]:
    """Build a row from replies that a person accepts. Also returns how many of them it uses.

    The row is complete if its `code` is empty; else some columns are not written yet.
    """
    steps = row_steps(recipe, row_seed)
    known = [*(Reply(text, "stop", is_accepted=True) for text in replies), Reply("", "unfinished")]
    sent = 0
    try:
        next(steps)
        while True:
            sent += 1
            steps.send(known[sent - 1])
    except StopIteration as end:
        row: Row = end.value
        return row, max(0, sent - bool(row.code))
