"""Plans a llama-server: slots, context, KV cache and what they cost in memory (pure)."""

from dataclasses import dataclass, field, replace

from apps.tuning.errors import PlanError
from apps.tuning.planner.hardware import Hardware
from apps.tuning.planner.kv_cache import CELL_PADDING, DEFAULT_UBATCH, KvCache
from apps.tuning.planner.memory import (
    ExtraFiles,
    FitRow,
    MemoryPart,
    fit_table,
    generation_roof,
    largest_context,
    memory_parts,
    total_bytes,
)
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.uses import NEEDS, Needs, Use

MAX_SLOTS = 256
MAX_CONTEXT = 2**24
SMALLEST_CONTEXT = 1024


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is given; None is chosen."""

    shape: ModelShape
    hardware: Hardware
    use: Use = Use.CHAT
    slots: int | None = None
    context: int | None = None
    """Tokens of a slot."""
    cache_type: str | None = None
    extra: ExtraFiles = field(default_factory=ExtraFiles)

    def __post_init__(self) -> None:
        if self.slots is not None and not 1 <= self.slots <= MAX_SLOTS:
            raise PlanError(f"The number of slots must be between 1 and {MAX_SLOTS}.")
        if self.context is not None and not CELL_PADDING <= self.context <= MAX_CONTEXT:
            raise PlanError(
                f"The context of a slot must be between {CELL_PADDING} and {MAX_CONTEXT} tokens."
            )

    @property
    def needs(self) -> Needs:
        return NEEDS[self.use]

    @property
    def all_extra(self) -> ExtraFiles:
        return replace(
            self.extra,
            runtime=self.hardware.runtime_bytes,
            logits_of_each_token=self.use is not Use.DECISIONS,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    request: PlanRequest
    cache: KvCache
    parts: tuple[MemoryPart, ...]
    table: tuple[FitRow, ...]
    roof_empty: float | None
    """Tokens a second at the beginning of an answer; None: not known, or it does not fit."""
    roof_full: float | None
    """The same once the slot is full."""

    @property
    def slot_context(self) -> int:
        return self.cache.context // self.cache.slots

    @property
    def needed_bytes(self) -> int:
        return total_bytes(self.parts)

    @property
    def fits(self) -> bool:
        return self.needed_bytes <= self.request.hardware.available_bytes

    @property
    def layers_that_fit(self) -> int:
        """Estimate: as if every layer had the same share of weights and KV cache."""
        layers = len(self.request.shape.layers)
        divisible = sum(
            part.bytes or 0 for part in self.parts if part.name in {"Weights", "KV cache"}
        )
        left = self.request.hardware.available_bytes - (self.needed_bytes - divisible)
        return max(0, min(layers, left * layers // divisible)) if divisible else layers


def make_plan(request: PlanRequest) -> Plan:
    """Choose what was not given, within the memory and what the model was trained for.

    Raises:
        PlanError: the type of the KV cache is unknown or does not suit the model.
    """
    needs, extra = request.needs, request.all_extra
    available = request.hardware.available_bytes
    cache = _choose_cache(request)
    plan = Plan(
        request=request,
        cache=cache,
        parts=memory_parts(request.shape, cache, extra),
        table=fit_table(request.shape, replace(cache, unified=needs.unified), available, extra),
        roof_empty=None,
        roof_full=None,
    )
    speed = request.hardware.bandwidth
    if not plan.fits or speed is None:
        return plan
    return replace(
        plan,
        roof_empty=generation_roof(request.shape, cache, speed, context=0),
        roof_full=generation_roof(request.shape, cache, speed, context=plan.slot_context),
    )


def _choose_cache(request: PlanRequest) -> KvCache:
    """f16 where the wanted context fits, else the type that lets the slots hold more."""
    wanted = request.context or min(
        request.needs.context, request.shape.context or request.needs.context
    )
    types = (request.cache_type,) if request.cache_type else ("f16", "q8_0")
    best: KvCache | None = None
    for name in types:
        cache = _sized(request, wanted, name)
        if best is None or cache.context > best.context:
            best = cache
        if best.context >= wanted * best.slots:
            break
    assert best is not None
    return best


def _sized(request: PlanRequest, wanted: int, type_name: str) -> KvCache:
    """Return the cache with the wanted context, or with what fits if the user gave none."""
    needs = request.needs
    slots = request.slots or needs.slots
    ubatch = max(DEFAULT_UBATCH, wanted) if needs.whole_prompt_in_ubatch else DEFAULT_UBATCH
    cache = KvCache(
        wanted * slots,
        slots=slots,
        unified=needs.unified,
        key_type=type_name,
        value_type=type_name,
        ubatch=ubatch,
    )
    if request.context:
        return cache
    try:
        fits = largest_context(
            request.shape, cache, request.hardware.available_bytes, request.all_extra
        )
    except PlanError:
        if request.cache_type:
            raise
        return replace(cache, context=slots)  # this type does not suit the model
    return replace(cache, context=min(wanted, max(fits or 0, SMALLEST_CONTEXT)) * slots)
