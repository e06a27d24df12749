"""Trying a recipe: a few rows, really asked for."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.batch.handlers import Outcome
from apps.generation.draws import Draw
from apps.generation.plan import Recipe
from apps.generation.rows import Told, outcome, tell
from apps.generation.seeds import Table
from apps.llm.errors import LLMError
from apps.llm.services import Target, look_at
from apps.llm.slots import Lane, permit

PREVIEW_ROWS = 3


@dataclass(frozen=True)
class Preview:
    """One row as the job would make it, or why it could not be asked for."""

    told: Told | None
    outcome: Outcome | None
    error: str = ""

    @property
    def pretty(self) -> str:
        return "" if self.outcome is None else pretty(self.outcome.output)


async def preview(
    target: Target,
    recipe: Recipe,
    seed: int,
    *,
    rows: int = PREVIEW_ROWS,
    tables: Mapping[str, Table] | None = None,
) -> list[Preview]:
    """The first rows, really asked for. Somebody waits, so they go before any job's rows."""
    server = await look_at(target.server)
    chosen = Target(server, target.model)
    draws = [Draw(at, seed, tables=tables or {}) for at in range(rows)]
    return list(await asyncio.gather(*(_try(chosen, recipe, draw) for draw in draws)))


async def _try(target: Target, recipe: Recipe, draw: Draw) -> Preview:
    try:
        async with permit(
            target.server, lane=Lane.INTERACTIVE, model=target.model, label="Preview"
        ):
            told = await tell(recipe, draw, target.client, target.model)
    except LLMError as error:
        return Preview(None, None, str(error))
    return Preview(told, outcome(recipe, told))


def pretty(output: Any) -> str:
    return "" if output is None else json.dumps(output, ensure_ascii=False, indent=2)
