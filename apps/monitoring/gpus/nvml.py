"""The NVIDIA GPUs of this machine, as their driver reports them through NVML."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pynvml

from apps.monitoring.gpus.reading import GpuReading

T = TypeVar("T")
MIB = 2**20


def read() -> list[GpuReading]:
    """Return a reading of each GPU; [] without an NVIDIA driver. Blocks for milliseconds."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return list(_readings())
    except pynvml.NVMLError:  # the driver was unloaded meanwhile
        return []
    finally:
        pynvml.nvmlShutdown()


def _readings() -> Iterator[GpuReading]:
    for number in range(pynvml.nvmlDeviceGetCount()):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(number)
        memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
        rates = _if_supported(pynvml.nvmlDeviceGetUtilizationRates, gpu)
        milliwatts = _if_supported(pynvml.nvmlDeviceGetPowerUsage, gpu)
        yield GpuReading(
            memory_used=memory.used // MIB,
            memory_total=memory.total // MIB,
            name=_text(_if_supported(pynvml.nvmlDeviceGetName, gpu)),
            busy=None if rates is None else rates.gpu / 100,
            power=None if milliwatts is None else milliwatts / 1000,
        )


def _text(value: str | bytes | None) -> str:
    """Older versions of the library return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def _if_supported(read: Callable[[Any], T], gpu: Any) -> T | None:
    """Return a value; None on GPUs that do not report it, such as a part of one (MIG)."""
    try:
        return read(gpu)
    except pynvml.NVMLError_NotSupported:
        return None
