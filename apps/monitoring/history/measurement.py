"""What was measured in some time. Pure.

Measurements are sums and can be added in any order; rates, shares and percentiles are computed from
the sums. Each is None where nothing was measured: that is "not reported", never 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest

from apps.llm.permits import FIRST_TOKEN_BOUNDS_MS, PROMPT_TOKEN_BOUNDS
from apps.monitoring.gpus.reading import GpuReading

BUCKETS = len(FIRST_TOKEN_BOUNDS_MS) + 1
SIZES = len(PROMPT_TOKEN_BOUNDS) + 1
# Counts by bucket; their names in the totals begin so.
HISTOGRAMS = {"first_tokens": ("first", BUCKETS), "prompt_sizes": ("size", SIZES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    readings: int = 0
    """How often slots and queue were read; the next four are sums over these readings."""
    busy: int = 0
    waiting: int = 0
    slots: int = 0
    away: int = 0
    """Readings at which the server did not answer."""
    seconds: float = 0.0
    """The time in which everything below was counted."""
    requests: int = 0
    failed: int = 0
    prompt: int = 0
    """Prompt tokens, those from the cache included."""
    cached: int = 0
    reported: int = 0
    """Prompt tokens of answers that reported how many came from the cache."""
    completion: int = 0
    timed: int = 0
    """Generated tokens of answers that reported their speed, and the time these took."""
    timed_ms: int = 0
    ended: int = 0
    """Answers of which it is known how they ended."""
    only_thought: int = 0
    """Those of them whose max tokens were used up by their thought."""
    drafted: int = 0
    """Tokens that a draft proposed, and those of them that the model accepted."""
    draft_accepted: int = 0
    drafting: int = 0
    """Generated tokens of the answers that had drafts."""
    cut_off: int = 0
    """Requests that something on the way ended, their ages in hundredths of a second, squares."""
    cut_off_cs: int = 0
    cut_off_cs2: int = 0
    prompt_cut: int = 0
    """Prompts of which earlier messages were left out, so that they fit."""
    too_long: int = 0
    """Prompts that were refused as too long."""
    prompt_sizes: Sequence[int] = ()
    """Prompts by their tokens, the refused included: a count for each bucket."""
    first_ms: int = 0
    first_tokens: Sequence[int] = ()
    """Requests by the time to their first token: a count for each bucket."""
    loads: int = 0
    """Models that were in memory at a reading and not at the one before: at least as many loads."""
    gpu_readings: int = 0
    """How often the machine's GPUs were read; what follows are sums over these readings."""
    gpu_memory: int = 0
    """MiB in use on all of them together."""
    gpu_busy_readings: int = 0
    """Those of the readings that reported `gpu_busy`, the mean share of all GPUs, 0 to 1."""
    gpu_busy: float = 0.0
    gpu_power: float = 0.0
    """Watts of all of them together; 0: not reported."""

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], **others: float) -> "Measurement":
        """
        Args:
            counts: as in `apps.llm.permits.Counts`.
            others: readings, busy, waiting, slots, away, seconds.
        """
        plain = {name: counts[name] for name in cls.names() if name in counts}
        histograms: dict[str, Sequence[int]] = {}
        for name, (prefix, buckets) in HISTOGRAMS.items():
            found = [counts.get(f"{prefix}_{number}", 0) for number in range(buckets)]
            histograms[name] = found if any(found) else ()
        return cls(**plain, **others, **histograms)  # type: ignore[arg-type]

    @classmethod
    def from_gpus(cls, gpus: Sequence[GpuReading]) -> "Measurement":
        """Return one reading of all GPUs of a machine; without GPUs, none."""
        if not gpus:
            return cls()
        busy = [gpu.busy for gpu in gpus if gpu.busy is not None]
        return cls(
            gpu_readings=1,
            gpu_memory=sum(gpu.memory_used for gpu in gpus),
            gpu_busy_readings=int(bool(busy)),
            gpu_busy=sum(busy) / len(busy) if busy else 0.0,
            gpu_power=sum(gpu.power or 0.0 for gpu in gpus),
        )

    def __add__(self, other: "Measurement") -> "Measurement":
        plain = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.names()
            if name not in HISTOGRAMS
        }
        return Measurement(
            **plain,
            prompt_sizes=_add(self.prompt_sizes, other.prompt_sizes),
            first_tokens=_add(self.first_tokens, other.first_tokens),
        )

    @property
    def prompt_per_second(self) -> float | None:
        return self.prompt / self.seconds if self.seconds else None

    @property
    def completion_per_second(self) -> float | None:
        return self.completion / self.seconds if self.seconds else None

    @property
    def speed(self) -> float | None:
        """Generated tokens per second of one answer."""
        return self.timed / self.timed_ms * 1000 if self.timed_ms else None

    @property
    def cache_share(self) -> float | None:
        """The share of prompt tokens that came from the cache, 0 to 1."""
        return self.cached / self.reported if self.reported else None

    @property
    def busy_slots(self) -> float | None:
        return self.busy / self.readings if self.readings else None

    @property
    def queue(self) -> float | None:
        """People's requests that waited for a slot, on average."""
        return self.waiting / self.readings if self.readings else None

    @property
    def gpu_memory_gib(self) -> float | None:
        return self.gpu_memory / self.gpu_readings / 1024 if self.gpu_readings else None

    @property
    def gpu_busy_share(self) -> float | None:
        return self.gpu_busy / self.gpu_busy_readings if self.gpu_busy_readings else None

    @property
    def gpu_watts(self) -> float | None:
        return self.gpu_power / self.gpu_readings if self.gpu_power else None

    def first_token_ms(self, share: float) -> float | None:
        """The time within which this share of requests had their first token.

        Within a bucket they are taken as evenly spread; beyond the last bound it is that bound.
        """
        return _quantile(self.first_tokens, FIRST_TOKEN_BOUNDS_MS, share)

    def prompt_tokens(self, share: float) -> float | None:
        """The tokens that this share of prompts had at most; see `first_token_ms`."""
        return _quantile(self.prompt_sizes, PROMPT_TOKEN_BOUNDS, share)


def _add(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [mine + theirs for mine, theirs in zip_longest(one, other, fillvalue=0)]


def _quantile(counts: Sequence[int], bounds: Sequence[int], share: float) -> float | None:
    total = sum(counts)
    if not total:
        return None
    wanted, seen, lower = share * total, 0.0, 0.0
    for count, upper in zip(counts, bounds, strict=False):
        if count and seen + count >= wanted:
            return lower + (upper - lower) * (wanted - seen) / count
        seen, lower = seen + count, float(upper)
    return lower


def total(points: Iterable[Measurement | None]) -> Measurement:
    """Add up what was measured; None: no sample."""
    return sum((point for point in points if point is not None), Measurement())


def since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return the growth of totals; all of them where one is smaller: Redis lost its counts."""
    if any(now.get(name, 0) < amount for name, amount in before.items()):
        before = {}
    grown = {name: amount - before.get(name, 0) for name, amount in now.items()}
    return {name: amount for name, amount in grown.items() if amount}
