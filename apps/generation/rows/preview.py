"""Trying a recipe: a few rows, really asked for."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.batch.handlers import RowOutcome
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows.generate_row import (
    GeneratedRow,
    advance_in_thread,
    generate_row,
    outcome,
    tokens_of,
)
from apps.generation.rows.samplers import RowSeed
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.llm.thinking import Thinking
from apps.servers.services import Target, hold_slot, refresh_server

PREVIEW_ROWS = 3


@dataclass(frozen=True)
class Preview:
    """Row as the job would generate it, or the reason why it could not be requested."""

    generated: GeneratedRow | None
    outcome: RowOutcome | None
    error: str = ""
    seconds: float | None = None
    """How long its slot was taken."""

    @property
    def output_json(self) -> str:
        return "" if self.outcome is None else format_json(self.outcome.output)


async def generate_preview(
    target: Target,
    recipe: Recipe,
    seed: int,
    *,
    person: int | None = None,
    rows: int = PREVIEW_ROWS,
    tables: Mapping[str, Table] | None = None,
) -> list[Preview]:
    """The first rows, really asked for. Somebody waits, so they go before any job's rows."""
    server = await refresh_server(target.server)
    chosen = Target(server, target.model)
    draws = [RowSeed(at, seed, tables=tables or {}) for at in range(rows)]
    thinking = Thinking(server.facts_of(target.model).thinking)
    tokens = await asyncio.to_thread(tokens_of, recipe, thinking.support, None, tables or {})
    tried = (_try(chosen, recipe, row_seed, person, thinking, tokens) for row_seed in draws)
    return list(await asyncio.gather(*tried))


async def _try(
    target: Target,
    recipe: Recipe,
    row_seed: RowSeed,
    person: int | None,
    thinking: Thinking,
    tokens: int,
) -> Preview:
    try:
        async with hold_slot(
            target.server,
            lane=Lane.INTERACTIVE,
            model=target.model,
            tokens=tokens,
            label="Preview",
            person=person,
            owner=person,
        ) as held:
            began = time.monotonic()
            generated = await generate_row(
                recipe,
                row_seed,
                target.client,
                target.model,
                thinking=thinking,
                advance=advance_in_thread,  # a template must not block the event loop
            )
            seconds = time.monotonic() - began
            held.record_usage(generated.usage)
    except LLMError as error:
        return Preview(None, None, str(error))
    return Preview(generated, await asyncio.to_thread(outcome, recipe, generated), seconds=seconds)


def format_json(output: Any) -> str:
    return "" if output is None else json.dumps(output, ensure_ascii=False, indent=2)
