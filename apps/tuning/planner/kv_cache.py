"""How many bytes llama.cpp's KV cache takes (pure)."""

from collections.abc import Iterable
from dataclasses import dataclass

from apps.tuning.errors import PlanError
from apps.tuning.planner.model.model_shape import Layer, ModelShape

# Contexts are rounded up to a multiple of this, and then the share of each slot once more.
CELL_PADDING = 256
# Values in a block, and bytes of a block.
TYPES = {
    "f32": (1, 4),
    "f16": (1, 2),
    "bf16": (1, 2),
    "q8_0": (32, 34),
    "q5_1": (32, 24),
    "q5_0": (32, 22),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "iq4_nl": (32, 18),
}
DEFAULT_UBATCH = 512


@dataclass(frozen=True, slots=True)
class KvCache:
    """A KV cache as llama-server's flags describe it."""

    context: int
    """Tokens in all (-c)."""
    slots: int = 1
    unified: bool = False
    """One pool for all slots, in place of equal shares."""
    key_type: str = "f16"
    value_type: str = "f16"
    ubatch: int = DEFAULT_UBATCH

    def __post_init__(self) -> None:
        if self.context < 1 or self.slots < 1:
            raise PlanError("Context and slots must be at least 1.")
        for name in (self.key_type, self.value_type):
            if name not in TYPES:
                raise PlanError(
                    f"“{name}” is no type of the KV cache: use one of {', '.join(TYPES)}."
                )

    @property
    def streams(self) -> int:
        return 1 if self.unified else self.slots

    @property
    def cells(self) -> int:
        """Tokens that one slot can hold; all of them together where they share a pool."""
        return _padded(_padded(self.context) // self.streams or 1)

    def sliding_cells(self, window: int) -> int:
        """Cells of a layer with a sliding window: the window, and room for a micro-batch."""
        sequences = self.slots if self.unified else 1
        return min(self.cells, _padded(window * sequences + min(self.ubatch, self.context)))


def kv_bytes(shape: ModelShape, cache: KvCache) -> int:
    """Bytes of the KV cache, without recurrent states.

    Raises:
        PlanError: the type does not suit the model's heads.
    """
    full = [layer for layer in shape.layers if layer.kv_heads and not layer.sliding]
    sliding = [layer for layer in shape.layers if layer.kv_heads and layer.sliding]
    total = cache.cells * _token_bytes(full, cache)
    if sliding and shape.sliding_window:
        total += cache.sliding_cells(shape.sliding_window) * _token_bytes(sliding, cache)
    return total * cache.streams


def _token_bytes(layers: Iterable[Layer], cache: KvCache) -> int:
    """Bytes of one token in these layers."""
    total = 0
    for layer in layers:
        total += layer.kv_heads * _head_bytes(layer.key_length, cache.key_type)
        total += layer.kv_heads * _head_bytes(layer.value_length, cache.value_type)
    return total


def _head_bytes(length: int, type_name: str) -> int:
    block, size = TYPES[type_name]
    if length % block:
        raise PlanError(
            f"The KV cache cannot be {type_name}: heads of {length} values do not divide into"
            f" blocks of {block}. Use f16."
        )
    return length // block * size


def _padded(tokens: int) -> int:
    return -(-tokens // CELL_PADDING) * CELL_PADDING
