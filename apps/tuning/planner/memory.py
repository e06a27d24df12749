"""Memory of a model server by part, what fits, and how fast it can be at best (pure)."""

from dataclasses import dataclass, replace

from apps.tuning.errors import PlanError
from apps.tuning.planner.kv_cache import CELL_PADDING, DEFAULT_UBATCH, KvCache, kv_bytes
from apps.tuning.planner.model.model_shape import ModelShape

F32_BYTES = 4
# A model that does not say how long its context may be is tried up to here.
LONGEST_CONTEXT = 2**20
SLOT_COUNTS = (1, 2, 4, 8, 16)
CACHE_TYPES = ("f16", "q8_0", "q4_0")


@dataclass(frozen=True, slots=True)
class MemoryPart:
    name: str
    bytes: int | None
    """None: not reported."""
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class ExtraFiles:
    """Bytes of what is loaded beside the model."""

    projector: int = 0
    draft: int = 0
    runtime: int = 0
    """What the GPU's driver takes for itself."""
    logits_of_each_token: bool = True
    """False: only the last token of a prompt is asked for its probabilities (decisions)."""
    others: int = 0
    """What other models take that are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class FitRow:
    """Tokens that each of so many slots can hold, by type of the KV cache; None: none fits."""

    slots: int
    contexts: dict[str, int | None]


def memory_parts(
    shape: ModelShape, cache: KvCache, extra: ExtraFiles | None = None
) -> tuple[MemoryPart, ...]:
    """Every part of the memory that is not empty, weights first."""
    extra = extra or ExtraFiles()
    parts = [
        MemoryPart("Weights", shape.weight_bytes),
        MemoryPart("KV cache", kv_bytes(shape, cache), bool(shape.upper_bounds)),
        MemoryPart("Recurrent states", shape.state_bytes * cache.slots, estimate=True),
        MemoryPart("Compute buffers", compute_bytes(shape, cache, extra), estimate=True),
        MemoryPart("Projector", extra.projector),
        MemoryPart("Draft model", extra.draft),
        MemoryPart("GPU runtime", extra.runtime, estimate=True),
        MemoryPart("Other models", extra.others),
    ]
    return tuple(part for part in parts if part.bytes != 0)


def total_bytes(parts: tuple[MemoryPart, ...]) -> int:
    """All parts that are known."""
    return sum(part.bytes or 0 for part in parts)


def compute_bytes(shape: ModelShape, cache: KvCache, extra: ExtraFiles | None = None) -> int | None:
    """Estimate of the compute buffers: the widest results of one micro-batch, in f32.

    With flash attention these are the logits of the vocabulary, or the feed-forward layer's, and
    two copies of the hidden states. Llama 3.1 8B: 282 MiB computed, 259 logged.
    """
    logits, inner = shape.vocabulary or 0, 2 * (shape.feed_forward_length or 0)
    last_alone = extra is not None and not extra.logits_of_each_token
    widest = max(0 if last_alone and inner else logits, inner)
    if not widest:
        return None
    width = widest + 2 * (shape.embedding_length or 0)
    return min(cache.ubatch or DEFAULT_UBATCH, cache.context) * width * F32_BYTES


def largest_context(
    shape: ModelShape, cache: KvCache, available: int, extra: ExtraFiles | None = None
) -> int | None:
    """Return the most tokens a slot can hold in `available` bytes; None: not even one block.

    Never more than the model was trained for. `cache.context` is not looked at.
    """
    limit = (shape.context or LONGEST_CONTEXT) // CELL_PADDING
    fits, too_many = 0, limit + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        tried = replace(cache, context=middle * CELL_PADDING * cache.slots)
        if total_bytes(memory_parts(shape, tried, extra)) <= available:
            fits = middle
        else:
            too_many = middle
    return fits * CELL_PADDING or None


def fit_table(
    shape: ModelShape, cache: KvCache, available: int, extra: ExtraFiles | None = None
) -> tuple[FitRow, ...]:
    """Largest context for each number of slots and each common type of the KV cache."""
    return tuple(
        FitRow(
            slots,
            {
                name: _context_or_none(
                    shape,
                    replace(cache, slots=slots, key_type=name, value_type=name),
                    available,
                    extra,
                )
                for name in CACHE_TYPES
            },
        )
        for slots in SLOT_COUNTS
    )


def _context_or_none(
    shape: ModelShape, cache: KvCache, available: int, extra: ExtraFiles | None
) -> int | None:
    try:
        return largest_context(shape, cache, available, extra)
    except PlanError:  # the heads do not divide into blocks of this type
        return None


def generation_roof(
    shape: ModelShape, cache: KvCache, bandwidth: float, *, context: int
) -> float | None:
    """Tokens a second that one answer cannot exceed once `context` tokens are in its slot.

    Args:
        bandwidth: of the memory, in bytes a second.
    """
    if shape.read_bytes is None:
        return None
    one = replace(cache, slots=1, unified=False, context=max(context, 1))
    read = shape.read_bytes + (kv_bytes(shape, one) if context else 0)
    return bandwidth / read
