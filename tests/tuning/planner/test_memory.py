"""Memory by part, what fits, and the roof of the generation speed."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tuning.errors import PlanError
from apps.tuning.planner.hardware import GIB, HARDWARE, Kind, find_hardware
from apps.tuning.planner.kv_cache import KvCache
from apps.tuning.planner.memory import (
    ExtraFiles,
    compute_bytes,
    fit_table,
    generation_roof,
    largest_context,
    memory_parts,
    total_bytes,
)
from apps.tuning.planner.model.model_shape import Layer, ModelShape

LLAMA = ModelShape(
    "llama",
    (Layer(8, 128, 128),) * 32,
    embedding_length=4096,
    feed_forward_length=14_336,
    context=131_072,
    vocabulary=128_256,
    weight_bytes=int(4.58 * GIB),
    read_bytes=int(4.3 * GIB),
)


def test_parts_add_up_and_empty_ones_are_left_out() -> None:
    parts = memory_parts(LLAMA, KvCache(8192), ExtraFiles(projector=GIB))
    assert [part.name for part in parts] == ["Weights", "KV cache", "Compute buffers", "Projector"]
    assert total_bytes(parts) == sum(part.bytes or 0 for part in parts)
    assert [part.name for part in parts if part.estimate] == ["Compute buffers"]


def test_what_is_unknown_is_not_reported() -> None:
    shape = ModelShape("llama", (Layer(8, 128, 128),))
    assert [(part.name, part.bytes) for part in memory_parts(shape, KvCache(256))] == [
        ("Weights", None),
        ("KV cache", 256 * 4096),
        ("Compute buffers", None),
    ]
    assert generation_roof(shape, KvCache(256), 1e9, context=0) is None


@pytest.mark.parametrize(
    ("vocabulary", "width", "feed_forward", "logged_mib"),
    [
        pytest.param(128_256, 4096, 14_336, 258.5, id="Llama-3.1-8B"),
        pytest.param(152_064, 3584, 18_944, 304.0, id="Qwen2.5-7B"),
    ],
)
def test_compute_buffers_are_near_the_published_ones(
    vocabulary: int, width: int, feed_forward: int, logged_mib: float
) -> None:
    shape = replace(
        LLAMA, vocabulary=vocabulary, embedding_length=width, feed_forward_length=feed_forward
    )
    computed = compute_bytes(shape, KvCache(8192))
    assert computed is not None
    assert computed / 1024**2 == pytest.approx(logged_mib, rel=0.1)


def test_decisions_need_no_room_for_the_logits_of_each_token() -> None:
    cache = KvCache(16_384, slots=4, ubatch=4096)
    all_logits = compute_bytes(LLAMA, cache)
    assert all_logits == 4096 * (128_256 + 2 * 4096) * 4
    last_alone = compute_bytes(LLAMA, cache, ExtraFiles(logits_of_each_token=False))
    assert last_alone == 4096 * (2 * 14_336 + 2 * 4096) * 4


@given(st.integers(5 * GIB, 40 * GIB), st.sampled_from([1, 2, 4, 8]), st.booleans())
def test_the_largest_context_fits_and_a_larger_one_does_not(
    available: int, slots: int, unified: bool
) -> None:
    cache = KvCache(1, slots=slots, unified=unified)
    context = largest_context(LLAMA, cache, available)

    def needed(tokens: int) -> int:
        return total_bytes(memory_parts(LLAMA, replace(cache, context=tokens * slots)))

    assert context is None or needed(context) <= available
    if context != LLAMA.context:
        assert needed((context or 0) + 256) > available


def test_fit_table_grows_with_smaller_types_and_shrinks_with_slots() -> None:
    rows = fit_table(LLAMA, KvCache(1), 12 * GIB)
    for row in rows:
        f16, q8_0, q4_0 = (row.contexts[name] or 0 for name in ("f16", "q8_0", "q4_0"))
        assert 0 < f16 <= q8_0 <= q4_0
    for fewer, more in pairwise(rows):
        assert (fewer.contexts["f16"] or 0) >= (more.contexts["f16"] or 0)


def test_fit_table_has_no_context_where_nothing_fits() -> None:
    odd_heads = replace(LLAMA, layers=(Layer(8, 80, 80),) * 32)
    assert fit_table(LLAMA, KvCache(1), GIB)[0].contexts == dict.fromkeys(("f16", "q8_0", "q4_0"))
    assert fit_table(odd_heads, KvCache(1), 12 * GIB)[0].contexts["q8_0"] is None


def test_the_roof_falls_as_the_context_fills() -> None:
    bandwidth = find_hardware("RTX 4090").bandwidth
    assert bandwidth is not None
    empty = generation_roof(LLAMA, KvCache(8192), bandwidth, context=0)
    full = generation_roof(LLAMA, KvCache(8192), bandwidth, context=8192)
    assert empty == pytest.approx(1008e9 / (4.3 * GIB), rel=1e-6)
    assert full == pytest.approx(1008e9 / (5.3 * GIB), rel=1e-6)


def test_hardware_is_found_by_part_of_its_name() -> None:
    assert find_hardware("NVIDIA GeForce RTX 4090").memory_gib == 24
    assert find_hardware("rtx 3060").name == "RTX 3060"
    assert find_hardware("7900 xtx", count=2).available_bytes == 48 * GIB
    assert find_hardware("Apple M4 Pro", memory_gib=24).available_bytes == 16 * GIB


@pytest.mark.parametrize("name", ["RTX 9999", "RTX", ""])
def test_hardware_that_is_not_one_entry_is_refused_with_the_choice(name: str) -> None:
    with pytest.raises(PlanError, match="RTX 4090"):
        find_hardware(name)


@pytest.mark.parametrize("wrong", [{"memory_gib": -1.0}, {"memory_gib": 0.0}, {"count": 0}])
def test_impossible_hardware_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="between 0 and"):
        find_hardware("RTX 4090", **wrong)


def test_every_entry_of_the_table_is_plausible() -> None:
    assert {known.kind for known in HARDWARE.values()} == set(Kind)
    assert all(8 <= known.memory_gib <= 512 for known in HARDWARE.values())
    assert all(50 <= (known.bandwidth_gb or 0) <= 8000 for known in HARDWARE.values())
