"""What requests to each model of a server came to since counting began, and who is there now.

Counted in Redis by the script that releases a permit, in the round trip it takes anyway.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from apps.llm.permits.keys import permit_key
from apps.llm.permits.occupancy import unlapsed
from apps.llm.permits.permit import Permit
from apps.runtime.redis import async_redis, sync_redis

# The upper bounds of the histogram of the time to the first token; the last bucket has none.
FIRST_TOKEN_BOUNDS_MS = (
    *(25, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000, 8000),
    *(12_000, 16_000, 24_000, 32_000, 60_000),
)
# A short prompt takes longer for each token.
LEAST_PREFILL = 128
# Fewer tokens in all say little of how fast a server reads.
LEAST_READ = 1_000
# The same of the tokens of prompts: three to a doubling, from 64 to a million.
PROMPT_TOKEN_BOUNDS = tuple(round(64 * 2 ** (step / 3)) for step in range(43))
Counts = Counter[str]
"""Names: requests, failed, prompt, cached, reported, completion (as in `UsageBucket`), timed and
timed_ms (tokens whose generation was timed, and that time), ended (answers whose end is known),
only_thought (those of them that were a thought and nothing else when their max tokens were used
up), drafted and draft_accepted (tokens that a draft proposed, and those of them that the model
accepted), drafting (generated tokens of such answers), prefilled and prefill_ms (prompt tokens
that were processed, of prompts that were not short, and that time), cut_off, cut_off_cs and
cut_off_cs2 (requests that something on the way ended, their ages in hundredths of a second, and
the squares), prompt_cut (prompts of which earlier messages were left out, so that they fit),
too_long (those that were refused), size_<number> for each bucket of the tokens of all prompts, the
refused included, first_ms (the sum), and first_<number> for each bucket of the time to the first
token."""


@dataclass(frozen=True, slots=True)
class Load:
    """The permits of a server, by model as requests name it."""

    held: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)


def request_counts(permit: Permit) -> dict[str, int]:
    """Return what a request adds to the counts, without those that it does not change."""
    counts: dict[str, int] = {}
    if (cost := permit.usage) is not None:
        counts = {"requests": 1, "prompt": cost.prompt_tokens, "completion": cost.completion_tokens}
        if cost.tells_cached:
            counts |= {"cached": cost.cached_tokens, "reported": cost.prompt_tokens}
        if cost.tokens_per_second:
            milliseconds = round(cost.completion_tokens / cost.tokens_per_second * 1000)
            counts |= {"timed": cost.completion_tokens, "timed_ms": milliseconds}
        if cost.drafted:
            counts |= {
                "drafted": cost.drafted,
                "draft_accepted": cost.draft_accepted,
                "drafting": cost.completion_tokens,
            }
        if cost.prefilled >= LEAST_PREFILL and cost.prefill_ms >= 1:
            counts |= {"prefilled": cost.prefilled, "prefill_ms": round(cost.prefill_ms)}
    counts |= _prompt_counts(permit)
    if permit.is_only_thought is not None:
        counts |= {"ended": 1, "only_thought": int(permit.is_only_thought)}
    if permit.failed:
        counts["failed"] = 1
    if permit.cut_off_after is not None:
        age = round(permit.cut_off_after * 100)
        counts |= {"cut_off": 1, "cut_off_cs": age, "cut_off_cs2": age**2}
    if (first := permit.first_token_ms) is not None:
        counts |= {
            f"first_{bisect_left(FIRST_TOKEN_BOUNDS_MS, first)}": 1,
            "first_ms": round(first),
        }
    return {name: amount for name, amount in counts.items() if amount > 0}


def _prompt_counts(permit: Permit) -> dict[str, int]:
    """Return what a request adds to the counts of prompts by their size."""
    tokens = permit.usage.prompt_tokens if permit.usage is not None else permit.too_long_tokens
    counts = {
        "prompt_cut": int(permit.is_prompt_cut and permit.usage is not None),
        "too_long": int(permit.too_long_tokens is not None),
    }
    if tokens:
        counts[f"size_{bisect_left(PROMPT_TOKEN_BOUNDS, tokens)}"] = 1
    return counts


def read_totals(server_ids: Sequence[int]) -> dict[int, dict[str, Counts]]:
    """The counts by server and model. They begin anew where Redis lost them. Blocks."""
    pipeline = sync_redis().pipeline(transaction=False)
    for pk in server_ids:
        pipeline.hgetall(permit_key(pk, "totals"))
    return {
        pk: _by_model(cast(dict[bytes, bytes], found))
        for pk, found in zip(server_ids, pipeline.execute(), strict=True)
    }


async def read_prefill_rate(server_id: int, model: str) -> float | None:
    """Return how many prompt tokens a second a model reads there; None: not measured."""
    fields = [f"prefilled:{model}", f"prefill_ms:{model}"]
    found: Any = await async_redis().hmget(permit_key(server_id, "totals"), fields)
    tokens, milliseconds = (int(amount or 0) for amount in found)
    if tokens < LEAST_READ or not milliseconds:
        return None
    return tokens / milliseconds * 1000


def _by_model(found: dict[bytes, bytes]) -> dict[str, Counts]:
    counts: dict[str, Counts] = defaultdict(Counter)
    for key, amount in found.items():
        name, _, model = key.decode().partition(":")
        counts[model][name] = int(amount)
    return dict(counts)


def read_loads(server_ids: Sequence[int]) -> dict[int, Load]:
    """Count who holds and who waits for slots of each server now. Blocks; one round trip."""
    pipeline = sync_redis().pipeline(transaction=False)
    pipeline.time()
    for pk in server_ids:
        pipeline.hvals(permit_key(pk))
    (seconds, micros), *entries = pipeline.execute()
    now = seconds * 1000 + micros // 1000
    loads = {}
    for pk, found in zip(server_ids, entries, strict=True):
        load = loads[pk] = Load()
        for entry in unlapsed(found, now):
            (load.waiting if entry["lane"] == "waiting" else load.held)[entry["model"]] += 1
    return loads
