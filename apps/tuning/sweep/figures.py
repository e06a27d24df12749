"""Figures of a server from the times of its answers (pure). Times in seconds, rates in tokens/s."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from apps.tuning.sweep.plan import Load

# Of a server that reports none of its counts, pieces are counted instead of tokens.
FEWEST_PIECES = 2
# A curve that grows by more than this after its bend still pays.
STILL_GROWS = 1.25


@dataclass(frozen=True, slots=True)
class Timing:
    """One answer. `arrivals`: when each piece of it came, ascending."""

    began: float
    arrivals: Sequence[float]
    tokens: int
    prompt_tokens: int | None
    """None: not reported."""
    cached_tokens: int | None

    @property
    def first_token(self) -> float:
        """Seconds until the first token."""
        return self.arrivals[0] - self.began

    @property
    def ended(self) -> float:
        return self.arrivals[-1]


@dataclass(frozen=True, slots=True)
class Point:
    """One load as it was measured; None: not reported or not measurable."""

    load: Load
    rounds: int
    prompt_rate: float | None
    """Prompt tokens processed per second, of all sequences."""
    generation_rate: float | None
    """Of all sequences together."""
    first_token_p50: float
    first_token_p95: float
    cached_share: float | None

    @property
    def per_sequence(self) -> float | None:
        """Tokens/s of one sequence."""
        return None if self.generation_rate is None else self.generation_rate / self.load.width


def summarise(load: Load, rounds: Sequence[Sequence[Timing]]) -> Point:
    """Return the medians of all rounds, each of which has the answers of one start."""
    timings = [timing for one in rounds for timing in one]
    first_tokens = [timing.first_token for timing in timings]
    prompts = [rate for one in rounds if (rate := _prompt_rate(one)) is not None]
    generated = [rate for one in rounds if (rate := _generation_rate(one)) is not None]
    return Point(
        load,
        len(rounds),
        # What a cache leaves to process is too little to tell a rate from.
        None if load.is_cached or not prompts else statistics.median(prompts),
        statistics.median(generated) if generated else None,
        statistics.median(first_tokens),
        percentile(first_tokens, 95),
        _cached_share(timings),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile, interpolated between the values nearest to it."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def knee(curve: dict[int, float]) -> int | None:
    """Return the width after which a rate grows least for what is added; None of a straight line.

    The point that is farthest above the line from the curve's first to its last point.
    """
    if len(curve) < 3:
        return None
    first, last = min(curve), max(curve)
    slope = (curve[last] - curve[first]) / (last - first)
    above = {width: rate - curve[first] - slope * (width - first) for width, rate in curve.items()}
    found = max(above, key=lambda width: above[width])
    # Less than this cannot be told from noise.
    is_bent = above[found] > 0.05 * max(curve.values())
    return found if is_bent and curve[last] <= STILL_GROWS * curve[found] else None


def _prompt_rate(timings: Sequence[Timing]) -> float | None:
    counts = [
        timing.prompt_tokens - (timing.cached_tokens or 0)
        for timing in timings
        if timing.prompt_tokens is not None
    ]
    seconds = max(timing.arrivals[0] for timing in timings) - min(
        timing.began for timing in timings
    )
    return sum(counts) / seconds if len(counts) == len(timings) and seconds > 0 else None


def _generation_rate(timings: Sequence[Timing]) -> float | None:
    """While all sequences generate; where there is no such time, from the first to the last."""
    pieces = [arrival for timing in timings for arrival in timing.arrivals]
    begins = max(timing.arrivals[0] for timing in timings)
    ends = min(timing.ended for timing in timings)
    count = sum(begins < arrival <= ends for arrival in pieces)
    if ends <= begins or count < FEWEST_PIECES * len(timings):
        begins, ends = min(pieces), max(pieces)
        count = sum(begins < arrival <= ends for arrival in pieces)
    if ends <= begins:
        return None
    return count / (ends - begins) * tokens_per_piece(timings)


def tokens_per_piece(timings: Sequence[Timing]) -> float:
    """Return how many tokens a piece of the stream holds: of llama.cpp one."""
    pieces = sum(len(timing.arrivals) for timing in timings)
    return sum(timing.tokens for timing in timings) / pieces if pieces else 1.0


def _cached_share(timings: Sequence[Timing]) -> float | None:
    told = [
        (timing.cached_tokens, timing.prompt_tokens)
        for timing in timings
        if timing.cached_tokens is not None and timing.prompt_tokens
    ]
    prompts = sum(prompt for _, prompt in told)
    return sum(cached for cached, _ in told) / prompts if prompts else None
