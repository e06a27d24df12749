"""A plan as a person reads it in a terminal."""

from dataclasses import replace

import pytest

from apps.tuning.planner.flags import Flag
from apps.tuning.planner.hardware import GIB, find_hardware, unnamed_hardware
from apps.tuning.planner.kv_cache import KvCache
from apps.tuning.planner.memory import MemoryPart
from apps.tuning.planner.model.model_shape import Layer, ModelShape
from apps.tuning.planner.plan_text import (
    describe_cache,
    describe_hardware,
    describe_model,
    describe_roof,
    part_line,
    plan_lines,
    reason_lines,
    size_text,
    stack_lines,
)
from apps.tuning.planner.stack.presets import plan_preset
from tests.tuning.planner.plans import plan_of
from tests.tuning.planner.test_memory import LLAMA

GPU = find_hardware("RTX 4090")


@pytest.mark.parametrize(
    ("size", "text"),
    [(GIB, "1.00 GiB"), (GIB - 1, "1024.0 MiB"), (0, "0.0 MiB"), (3 * GIB // 2, "1.50 GiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_model_is_described_with_what_is_not_reported() -> None:
    assert describe_model(ModelShape("llama", (Layer(2, 64, 64),) * 3)) == (
        "Model: llama, quantisation not reported, 3 layers with a KV cache, KV heads 2, trained for"
        " not reported"
    )
    mixed = ModelShape(
        "deci",
        (Layer(0, 0, 0), Layer(1, 64, 64), Layer(4, 64, 64)),
        name="Mixed",
        quantisation="Q4_K_M",
        context=4096,
        experts=8,
    )
    text = describe_model(mixed)
    assert text.startswith("Mixed: deci, Q4_K_M, ")
    assert "KV heads 1 or 4" in text
    assert "trained for 4,096 tokens" in text
    assert text.endswith("? of 8 experts")


def test_hardware_is_described_with_its_count_and_what_macos_lends() -> None:
    assert describe_hardware(replace(GPU, count=2)) == (
        "2 × RTX 4090: 48.00 GiB, bandwidth 1,008 GB/s"
    )
    assert "10.67 GiB that macOS lends to the GPU" in describe_hardware(
        find_hardware("Apple M1", memory_gib=16)
    )
    assert describe_hardware(unnamed_hardware(6)) == "GPU: 6.00 GiB, bandwidth not reported"


@pytest.mark.parametrize(
    ("cache", "text"),
    [
        (KvCache(4096), "1 slot of 4,096 tokens, f16"),
        (KvCache(4096, slots=2, key_type="q8_0"), "2 slots of 2,048 tokens, q8_0"),
        (KvCache(4096, slots=2, unified=True), "2 slots that share 4,096 tokens, f16"),
    ],
)
def test_a_cache_is_described(cache: KvCache, text: str) -> None:
    assert describe_cache(cache) == text


def test_the_roof_is_a_sentence_or_why_there_is_none() -> None:
    assert "at most 234 tokens/s for one answer" in describe_roof(
        plan_of(replace(LLAMA, read_bytes=int(4e9)), hardware=replace(GPU, bandwidth_gb=936))
    )
    assert "not reported" in describe_roof(plan_of(LLAMA, hardware=unnamed_hardware(24)))
    large = replace(LLAMA, weight_bytes=90 * GIB)
    assert "does not fit" in describe_roof(plan_of(large, hardware=GPU))


def test_a_part_is_a_line_with_its_doubt() -> None:
    assert part_line(MemoryPart("Weights", None)).split() == ["Weights", "not", "reported"]
    assert part_line(MemoryPart("Compute buffers", GIB, estimate=True)).endswith(
        "1.00 GiB  estimate"
    )


def test_upper_bounds_and_unknown_parts_are_said() -> None:
    shape = replace(LLAMA, weight_bytes=None, upper_bounds=("Some layers are recurrent.",))
    text = "\n".join(plan_lines(plan_of(shape, hardware=GPU)))
    assert "KV cache is an upper bound: Some layers are recurrent." in text
    assert "what is not reported comes on top" in text


def test_reasons_say_what_depends_on_the_build() -> None:
    flags = [Flag("--a", None, "Because."), Flag("--b", "1", "So.", depends_on_build=True)]
    assert list(reason_lines(flags, ["Mind the gap."])) == [
        "  --a: Because.",
        "  --b: So. Depends on your build.",
        "Warning: Mind the gap.",
    ]


def test_a_stack_is_told_by_model_and_together() -> None:
    lines = list(stack_lines(plan_preset("24 GB")))
    assert lines[0].startswith("GPU: 24.00 GiB")
    assert [line.split()[1] for line in lines[1:4]] == ["(chat):", "(embeddings):", "(decisions):"]
    assert lines[-1].endswith("of 24.00 GiB: fits")
