"""Published sizes of KV caches, and requests that cannot be met."""

from typing import Any

import pytest

from apps.tuning.errors import PlanError
from apps.tuning.planner.kv_cache import KvCache, kv_bytes
from apps.tuning.planner.model.model_shape import Layer, ModelShape

MIB = 1024**2


def grouped(layers: int, kv_heads: int, length: int) -> ModelShape:
    return ModelShape("published", (Layer(kv_heads, length, length),) * layers)


@pytest.mark.parametrize(
    ("shape", "context", "mib"),
    [
        pytest.param(grouped(28, 4, 128), 8192, 448, id="Qwen2.5-7B"),
        pytest.param(grouped(32, 8, 128), 8192, 1024, id="Llama-3.1-8B"),
        pytest.param(grouped(32, 32, 128), 4096, 2048, id="Llama-2-7B"),
        pytest.param(grouped(80, 8, 128), 8192, 2560, id="Llama-3.1-70B"),
    ],
)
def test_published_sizes(shape: ModelShape, context: int, mib: int) -> None:
    assert kv_bytes(shape, KvCache(context)) == mib * MIB
    q8_0 = KvCache(context, key_type="q8_0", value_type="q8_0")
    assert kv_bytes(shape, q8_0) == mib * MIB * 34 // 64


def test_a_window_is_kept_once_for_each_slot() -> None:
    shape = ModelShape("gemma", (Layer(1, 128, 128, sliding=True),), sliding_window=1024)
    one = kv_bytes(shape, KvCache(65_536))
    assert one == 1536 * 512
    assert kv_bytes(shape, KvCache(4 * 65_536, slots=4)) == 4 * one


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"context": 0}, "at least 1"),
        ({"context": 1, "slots": 0}, "at least 1"),
        ({"context": 1, "key_type": "q9"}, "no type"),
    ],
)
def test_an_impossible_cache_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        KvCache(**arguments)


def test_a_quantised_cache_needs_heads_of_whole_blocks() -> None:
    with pytest.raises(PlanError, match="heads of 80 values"):
        kv_bytes(grouped(2, 8, 80), KvCache(4096, key_type="q4_0"))
