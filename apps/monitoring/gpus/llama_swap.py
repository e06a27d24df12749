"""The GPUs of a machine on which llama-swap runs, as its `/api/performance` reports them.

It measures with the vendors' tools every few seconds, and returns what it measured in the last
minutes: {"enabled": true, "gpu_stats": [{"id": 0, "mem_used_mb": 512, ...}, ...]}, oldest first.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from apps.llm.client import Client
from apps.llm.errors import LLMError
from apps.monitoring.gpus.reading import GpuReading

# It answers with all that it holds unless a moment is named; its clock may differ from ours.
RECENT = timedelta(minutes=10)
MOST_GPUS = 64
MOST_CHARACTERS = 200


async def read(client: Client) -> list[GpuReading]:
    """Return the newest reading of each GPU; [] where llama-swap reports none."""
    since = (datetime.now(UTC) - RECENT).isoformat(timespec="seconds")
    try:
        return newest(await client.get(f"/api/performance?after={quote(since)}"))
    except LLMError:  # versions before 2026 have no such route, and it can be turned off
        return []


def newest(reply: Any) -> list[GpuReading]:
    """Return the newest reading of each GPU in a reply, by GPU."""
    stats = reply.get("gpu_stats") if isinstance(reply, dict) else None
    by_gpu: dict[int, GpuReading] = {}
    for stat in stats if isinstance(stats, list) else []:
        if isinstance(stat, dict) and (reading := _reading(stat)) is not None:
            by_gpu[int(_number(stat, "id") or 0)] = reading
    return list(by_gpu.values())[:MOST_GPUS]


def _reading(stat: Mapping[str, Any]) -> GpuReading | None:
    used, total = _number(stat, "mem_used_mb"), _number(stat, "mem_total_mb")
    if used is None or not total:  # tools that report no memory leave 0
        return None
    percent = _number(stat, "gpu_util_pct")
    return GpuReading(
        memory_used=int(used),
        memory_total=int(total),
        name=str(stat.get("name") or "")[:MOST_CHARACTERS],
        busy=None if percent is None else min(percent / 100, 1.0),
        power=_number(stat, "power_draw_w") or None,
    )


def _number(stat: Mapping[str, Any], name: str) -> float | None:
    value = stat.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None
