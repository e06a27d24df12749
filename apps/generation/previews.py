"""Trying a recipe: a few rows, really asked for."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.batch.handlers import Outcome
from apps.generation import services
from apps.generation.draws import Draw
from apps.generation.plan import Recipe
from apps.generation.rows import Told, outcome, tell, tokens_of
from apps.generation.seeds import Table
from apps.llm.errors import LLMError
from apps.llm.services import Target, look_at
from apps.llm.slots import Lane, permit
from apps.llm.thinking import Thinking

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
    person: int | None = None,
    rows: int = PREVIEW_ROWS,
    tables: Mapping[str, Table] | None = None,
) -> list[Preview]:
    """The first rows, really asked for. Somebody waits, so they go before any job's rows."""
    server = await look_at(target.server)
    chosen = Target(server, target.model)
    draws = [Draw(at, seed, tables=tables or {}) for at in range(rows)]
    thinking = Thinking(server.model(target.model))
    tried = (_try(chosen, recipe, draw, person, thinking) for draw in draws)
    return list(await asyncio.gather(*tried))


async def _try(
    target: Target, recipe: Recipe, draw: Draw, person: int | None, thinking: Thinking
) -> Preview:
    try:
        async with permit(
            target.server,
            lane=Lane.INTERACTIVE,
            model=target.model,
            tokens=tokens_of(recipe, thinking.facts),
            label="Preview",
            person=person,
            owner=person,
        ) as held:
            told = await tell(recipe, draw, target.client, target.model, thinking=thinking)
            held.used(told.usage)
    except LLMError as error:
        return Preview(None, None, str(error))
    return Preview(told, outcome(recipe, told))


@dataclass(frozen=True)
class Estimate:
    """What a job of some rows comes to, from rows that were really made."""

    rows: int
    read: int
    """Tokens read anew: what is in the cache costs nothing."""
    written: int
    seconds: float | None
    accepted: float
    """Share of the tried rows that would be accepted."""


def estimate(target: Target, tried: list[Preview], rows: int) -> Estimate | None:
    """Tokens and time of a job, from a preview and the rates of earlier jobs on the same server.

    The first previews fill the cache, so of what is read the cheaper half counts.
    """
    told = [each.told for each in tried if each.told is not None]
    if not told:
        return None
    fresh = sorted(one.usage.prompt_tokens - one.usage.cached_tokens for one in told)
    cheaper = fresh[: max(1, len(fresh) // 2)]
    read = sum(cheaper) / len(cheaper)
    written = sum(one.usage.completion_tokens for one in told) / len(told)
    good = [each for each in tried if each.outcome and not each.outcome.code]
    rate = services.rate_of(target.server, target.model)
    if rate is None:
        speeds = [one.usage.tokens_per_second for one in told if one.usage.tokens_per_second]
        rate = sum(speeds) / len(speeds) * target.server.slots if speeds else None
    return Estimate(
        rows=rows,
        read=round(read * rows),
        written=round(written * rows),
        seconds=written * rows / rate if rate else None,
        accepted=len(good) / len(tried),
    )


def pretty(output: Any) -> str:
    return "" if output is None else json.dumps(output, ensure_ascii=False, indent=2)
