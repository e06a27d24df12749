"""The computed KV cache against what a real llama-server writes in its log."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from apps.tuning.planner.kv_cache import KvCache, kv_bytes
from apps.tuning.planner.model.gguf_header import read_header
from apps.tuning.planner.model.model_shape import read_shape
from tests.backends.programs import command
from tests.llama_process import free_port
from tests.tuning.planner.real.tiny_recurrent import write_recurrent
from tests.tuning.planner.tiny_shapes import SHAPES, write_shape

CACHES = {
    "one slot": KvCache(8192),
    "split": KvCache(16_384, slots=4),
    "unified": KvCache(16_384, slots=4, unified=True),
    "q8_0": KvCache(16_384, slots=2, key_type="q8_0", value_type="q8_0"),
    "share rounded up twice": KvCache(513, slots=2),
    "q4_0, odd shares": KvCache(5000, slots=3, key_type="q4_0", value_type="q4_0", ubatch=256),
}


def logged_mib(model: Path, cache: KvCache, buffer: str = "KV") -> float:
    """Start llama-server and add up the buffers of this name that it reports."""
    words = [command("llama-server"), "-m", str(model), "--port", str(free_port())]
    words += ["--host", "127.0.0.1", "-t", "1", "--no-warmup", "--offline", "-fit", "off"]
    words += ["-lv", "4", "-c", str(cache.context), "-np", str(cache.slots)]
    words += ["-ub", str(cache.ubatch), "-kvu" if cache.unified else "-no-kvu"]
    words += ["-ctk", cache.key_type, "-ctv", cache.value_type]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "compute buffer size" in line:
                break
        process.kill()
    found = re.findall(rf"{buffer} buffer size = +([\d.]+) MiB", "".join(lines))
    assert found, "".join(lines)[-2000:]
    return sum(map(float, found))


@pytest.mark.parametrize("cache", CACHES.values(), ids=CACHES)
@pytest.mark.parametrize("name", SHAPES)
def test_kv_bytes_are_those_of_the_log(name: str, cache: KvCache, tmp_path: Path) -> None:
    model = write_shape(tmp_path / "shape.gguf", SHAPES[name])
    shape = read_shape(read_header(model.read_bytes()))
    # The log rounds each of its two buffers to hundredths.
    assert kv_bytes(shape, cache) / 1024**2 == pytest.approx(logged_mib(model, cache), abs=0.011)


def test_llama_server_pads_shares_as_computed(tmp_path: Path) -> None:
    model = write_shape(tmp_path / "shape.gguf", replace(SHAPES["GQA"], layers=1))
    shape = read_shape(read_header(model.read_bytes()))
    cache = KvCache(2048, slots=8)
    assert cache.cells == 256
    assert kv_bytes(shape, cache) / 1024**2 == logged_mib(model, cache)


def test_recurrent_states_are_those_of_the_log(tmp_path: Path) -> None:
    model = write_recurrent(tmp_path / "recurrent.gguf")
    shape = read_shape(read_header(model.read_bytes()))
    cache = KvCache(4096, slots=4)
    assert kv_bytes(shape, cache) == 0
    logged = logged_mib(model, cache, "RS")
    assert shape.state_bytes * 4 / 1024**2 == pytest.approx(logged, abs=0.006)
