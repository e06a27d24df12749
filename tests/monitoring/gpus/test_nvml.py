"""GPUs as NVIDIA's driver reports them; no test machine has one, so its library is replaced."""

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from apps.monitoring.gpus import nvml
from apps.monitoring.gpus.reading import GpuReading

GIB = 2**30


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A driver with one GPU."""
    answers: dict[str, Any] = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": object(),
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=6 * GIB, total=24 * GIB),
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=75),
        "nvmlDeviceGetPowerUsage": 250_000,
        "nvmlDeviceGetName": b"NVIDIA GeForce RTX 4090",
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, lambda *_, answer=answer: answer)
    return monkeypatch


def refuse(error: type[Exception]) -> Any:
    def call(*_: object) -> None:
        raise error

    return call


@pytest.mark.usefixtures("driver")
def test_a_gpu_reports_memory_load_and_power() -> None:
    expected = {"memory_used": 6 * 1024, "memory_total": 24 * 1024, "busy": 0.75, "power": 250}
    assert nvml.read() == [GpuReading(name="NVIDIA GeForce RTX 4090", **expected)]


def test_what_a_gpu_does_not_support_is_not_reported(driver: pytest.MonkeyPatch) -> None:
    for name in ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage"):
        driver.setattr(pynvml, name, refuse(pynvml.NVMLError_NotSupported))
    [reading] = nvml.read()
    assert (reading.memory_used, reading.busy, reading.power) == (6 * 1024, None, None)


@pytest.mark.parametrize("failing", ["nvmlInit", "nvmlDeviceGetMemoryInfo"])
def test_without_a_working_driver_there_is_none(driver: pytest.MonkeyPatch, failing: str) -> None:
    driver.setattr(pynvml, failing, refuse(pynvml.NVMLError_LibraryNotFound))
    assert nvml.read() == []
