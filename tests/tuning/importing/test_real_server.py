"""What an import says of slots and KV cache against the real llama-server with the same words."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import import_servers
from apps.tuning.planner.kv_cache import kv_bytes
from tests.backends.programs import command
from tests.llama_process import free_port
from tests.tuning.planner.plans import shape_of_file
from tests.tuning.planner.tiny_shapes import SHAPES, write_shape


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    return write_shape(folder / "window.gguf", SHAPES["sliding window, every second layer"])


def log_of(words: list[str]) -> str:
    """What it writes until its buffers are there."""
    start = [command("llama-server"), *words, "--host", "127.0.0.1", "--port", str(free_port())]
    start += ["--no-warmup", "--offline", "-fit", "off", "-lv", "4", "-t", "1"]
    lines = []
    with subprocess.Popen(
        start, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "compute buffer size" in line:
                break
        process.kill()
    return "".join(lines)


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "-c 0 -np 2",
        "-c 10000",
        "-c 10000 -np 3",
        "-c 10000 -np 3 -kvu",
        "-c 10000 -np 3 -kvu -no-kvu",
        "-np 4 --kv-unified-per-slot 2048",
        "-c 4096 -np 2 --kv-unified-per-slot 4096",
        "-c 4096 -np 2 -kvu --kv-unified-per-slot 1024",
        "--kv-unified-per-slot 2048",
        "--ctx_size 8192 --parallel -1 --no-kv-unified",
        "-c 8192 -np 2 -ctk q8_0 -ctv q4_0 -ub 128",
        "-c 8192 -c 4096 -np 1",
    ],
)
def test_an_imported_command_has_the_kv_cache_of_the_server(flags: str, model: Path) -> None:
    shape = shape_of_file(model)
    words = ["-m", str(model), *shlex.split(flags)]
    text = shlex.join(["llama-server", *words])
    [server] = import_servers(text, shipped_table(), shape_of=lambda _: shape)
    assert server.cache is not None
    log = log_of(words)
    sizes = [float(size) for size in re.findall(r"KV buffer size = +([\d.]+) MiB", log)]
    assert sizes, log[-2000:]
    assert kv_bytes(shape, server.cache) / 1024**2 == pytest.approx(sum(sizes), abs=0.011)
    assert re.findall(r"n_seq_max += (\d+)", log)[-1] == str(server.cache.slots)
    unified = re.findall(r"kv_unified += (\w+)", log)[-1]
    assert unified == str(server.cache.unified).lower()
