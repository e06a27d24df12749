"""Upper bounds of the tokens of a row: of its prompts, and of all its requests.

Where slots share one context, rows are admitted by it: a prompt longer than its bound would end the
answers of everyone.
"""

from collections.abc import Mapping

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.sampled import Expression
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.prompts.budget import MAX_PROMPT
from apps.generation.recipe.recipe import Recipe
from apps.llm.thinking import ThinkingSupport, plan_thinking
from apps.llm.token_bound import ASCII_CHARACTERS, max_tokens_of

DRAWN = 40  # tokens of a number, a date, an identifier
MOST = MAX_PROMPT // ASCII_CHARACTERS
NO_TABLES: Mapping[str, Table] = {}


def row_tokens_bound(
    recipe: Recipe,
    thinking: ThinkingSupport,
    prompt: int | None = None,
    tables: Mapping[str, Table] = NO_TABLES,
) -> int:
    """Return the max tokens of a row's requests, answers and thoughts included.

    Args:
        prompt: tokens of the prompts, if they are known.
        tables: else the seed rows to count them.
    """
    plans = (
        plan_thinking(thinking, request.thinking, request.reasoning_effort)
        for request in recipe.requests
    )
    thoughts = sum(plan.extra_tokens for plan in plans)
    prompt_size = prompt_tokens(recipe, tables) if prompt is None else prompt
    # A repeated request is rare and not counted: it would halve the width of all rows.
    return prompt_size + recipe.max_tokens + thoughts


def prompt_tokens(recipe: Recipe, tables: Mapping[str, Table]) -> int:
    """Counts the longest values, examples and earlier answers, as often as a prompt names them."""
    longest: dict[str, int] = {}
    total = max_tokens_of(recipe.system_message)
    for column, request in recipe.steps:
        if request is not None:
            prompt = _of(request.column.prompt, longest) + max_tokens_of(request.fields)
            total += min(MOST, prompt)
            longest |= dict.fromkeys(column.names, request.max_tokens)
        else:
            longest |= _longest(column, tables, longest)
    return total


def _of(template: str, longest: Mapping[str, int]) -> int:
    named = templates.names_in(template)
    return max_tokens_of(template) + sum(longest.get(name, 0) for name in named)


def _longest(
    column: Column, tables: Mapping[str, Table], known: Mapping[str, int]
) -> dict[str, int]:
    """Return the tokens of the longest value of each name that a column gives."""
    match column:
        case Choice():
            return {column.name: max(map(max_tokens_of, column.values), default=0)}
        case Seed():
            return _of_seed(column, tables.get(column.name))
        case Expression():
            named = templates.names_in(column.expression, expression=True)
            whole = max_tokens_of(column.expression) + sum(known.get(name, 0) for name in named)
            return {column.name: whole}
    return {column.name: DRAWN}


def _of_seed(column: Seed, table: Table | None) -> dict[str, int]:
    rows = table.rows if table is not None else ()
    parts = {
        part: max((max_tokens_of(row.get(part, "")) for row in rows), default=0)
        for part in column.row_fields
    }
    if column.example_template:
        example = _of(column.example_template, parts)
    else:
        example = sum(parts.values()) + sum(map(max_tokens_of, parts))
    fields = {f"{column.name}_{part}": tokens for part, tokens in parts.items()}
    return {column.name: column.count * example, **fields}
