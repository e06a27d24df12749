"""Model files compared with the memory that is free."""

from pathlib import Path

import pytest

from apps.embedded.errors import StartError
from apps.embedded.llama_program import Device, LlamaProgram
from apps.embedded.model_files import memory

GPU = LlamaProgram(devices=(Device(name="GPU", total_bytes=8000, free_bytes=3000),))


@pytest.fixture(autouse=True)
def _little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       9 kB\nMemAvailable:       2 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", meminfo)


def model(folder: Path, size: int, name: str = "model.gguf") -> Path:
    path = folder / name
    path.write_bytes(bytes(size))
    return path


def test_a_model_that_fits(tmp_path: Path) -> None:
    memory.check_memory(LlamaProgram(), [model(tmp_path, 2048)])


def test_a_model_larger_than_all_free_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"model.gguf has 0.0 GiB, but only 0.0 GiB of memory"):
        memory.check_memory(LlamaProgram(), [model(tmp_path, 2049)])


def test_the_memory_of_a_gpu_counts(tmp_path: Path) -> None:
    memory.check_memory(GPU, [model(tmp_path, 5000)])
    with pytest.raises(StartError, match="on GPU"):
        memory.check_memory(GPU, [model(tmp_path, 5049)])


def test_all_parts_of_a_split_model_count(tmp_path: Path) -> None:
    first = model(tmp_path, 10, "m-00001-of-00002.gguf")
    model(tmp_path, 20, "m-00002-of-00002.gguf")
    model(tmp_path, 40, "m-00002-of-00003.gguf")

    assert memory.file_size(first) == 30


def test_models_stay_in_memory_together_if_they_fit(tmp_path: Path) -> None:
    small = [model(tmp_path, 700, f"{n}.gguf") for n in range(2)]

    assert memory.models_that_fit(LlamaProgram(), small) == 2
    assert memory.models_that_fit(LlamaProgram(), [*small, model(tmp_path, 700, "c.gguf")]) == 1


def test_a_system_without_meminfo_tells_its_physical_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")

    assert memory.free_memory()
