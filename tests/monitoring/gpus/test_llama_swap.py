"""GPUs as llama-swap reports them."""

from typing import Any

import pytest

from apps.monitoring.gpus.llama_swap import MOST_GPUS, newest
from apps.monitoring.gpus.reading import GpuReading


def stat(gpu: int, **values: Any) -> dict[str, Any]:
    """As internal/perf/types.go writes it, of llama-swap in November 2026."""
    return {
        "timestamp": "2026-11-28T12:00:00Z",
        "id": gpu,
        "name": "RTX 3090",
        "gpu_util_pct": 50.0,
        "mem_used_mb": 12_000,
        "mem_total_mb": 24_576,
        "power_draw_w": 250.5,
    } | values


def test_the_newest_reading_of_each_gpu_counts() -> None:
    reply = {"enabled": True, "gpu_stats": [stat(0), stat(1), stat(0, mem_used_mb=13_000)]}
    expected = {"name": "RTX 3090", "memory_total": 24_576, "busy": 0.5, "power": 250.5}
    assert newest(reply) == [
        GpuReading(memory_used=13_000, **expected),
        GpuReading(memory_used=12_000, **expected),
    ]


def test_what_a_tool_does_not_measure_is_not_reported() -> None:
    [reading] = newest({"gpu_stats": [stat(0, power_draw_w=0, gpu_util_pct=None)]})
    assert (reading.busy, reading.power) == (None, None)
    assert newest({"gpu_stats": [stat(0, mem_total_mb=0)]}) == []


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {"enabled": False},
        {"gpu_stats": None},
        {"gpu_stats": [7, {}, {"id": 0}]},
        {"gpu_stats": [stat(0, mem_used_mb=True)]},
        {"gpu_stats": [stat(0, mem_used_mb=-1)]},
        {"gpu_stats": [stat(0, mem_total_mb="24 GB")]},
    ],
)
def test_replies_without_readings(reply: Any) -> None:
    assert newest(reply) == []


def test_a_reply_is_bounded() -> None:
    assert len(newest({"gpu_stats": [stat(number) for number in range(1_000)]})) == MOST_GPUS
