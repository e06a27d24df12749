"""Which llama.cpp serves the chat model, and what it says it computes on."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.embedded.errors import StartError
from apps.embedded.llama_program import LlamaProgram, find_program, parse_devices

TWO_GPUS = """Available devices:
  CUDA0: NVIDIA H100 80GB HBM3 (81079 MiB, 80499 MiB free)
  Vulkan1: AMD Radeon (RADV GFX1100) (24560 MiB, 512 MiB free)
"""


def program(folder: Path, script: str, name: str = "llama-server") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of the PATH but the shell's own."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    return tmp_path


def test_devices_are_read_with_their_memory() -> None:
    first, second = parse_devices(TWO_GPUS)

    assert (first.name, str(first)) == ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3 (79 GiB)")
    assert first.free_bytes == 80_499 * 1024**2
    assert second.name == "AMD Radeon (RADV GFX1100)"


PRINTED = st.lists(
    st.text(max_size=20)
    | st.sampled_from(["  ", "CUDA0: ", "A GPU ", "(9 MiB, ", "8 MiB free)", "\n", "\r\n", "٣"])
    | st.just("9" * 5_000)
).map("".join)


@given(PRINTED)
def test_parse_devices_reads_any_text(printed: str) -> None:
    for device in parse_devices(printed):
        assert device.name
        assert device.total_bytes >= 0
        assert device.free_bytes >= 0


NAMES = st.text("Ab0 .()-:", max_size=12).map("{}x".format).map(str.lstrip)


@given(st.lists(st.tuples(NAMES, st.integers(0, 10**9), st.integers(0, 10**9))), st.text())
def test_parse_devices_finds_each_line_of_llama_cpp(
    devices: list[tuple[str, int, int]], before: str
) -> None:
    printed = "\n".join(
        f"  CUDA{place}: {name} ({total} MiB, {free} MiB free)"
        for place, (name, total, free) in enumerate(devices)
    )
    found = parse_devices(f"{before.replace(' ', '')}\n{printed}\n")
    assert [(device.name, device.total_bytes // 1024**2) for device in found] == [
        (name, total) for name, total, _ in devices
    ]


def test_parse_devices_skips_a_size_that_no_memory_has() -> None:
    assert parse_devices(f"  CUDA0: A GPU ({'9' * 5_000} MiB, 1 MiB free)\n") == ()


def test_no_device_is_the_cpu() -> None:
    assert parse_devices("Available devices:\n  (none)\n") == ()
    assert LlamaProgram().device == "CPU"


def test_a_llama_server_on_the_path_is_used(on_path: Path) -> None:
    path = program(on_path, f"cat <<END\n{TWO_GPUS}END")
    found = find_program("")

    assert found.path == path
    assert found.device == "NVIDIA H100 80GB HBM3 (79 GiB), AMD Radeon (RADV GFX1100) (24 GiB)"


def test_without_one_the_wheel_serves(on_path: Path) -> None:
    assert find_program("") == LlamaProgram()


def test_bundled_is_the_wheel_whatever_is_installed(on_path: Path) -> None:
    program(on_path, "exit 1")

    assert find_program("bundled") == LlamaProgram()


def test_a_chosen_program_is_used(on_path: Path, tmp_path: Path) -> None:
    other = program(tmp_path, "echo", name="llama-b11549")

    assert find_program(str(other)).path == other


def test_a_chosen_program_that_is_not_there(on_path: Path) -> None:
    with pytest.raises(StartError, match="there is no program /nowhere/llama-server"):
        find_program("/nowhere/llama-server")


def test_a_program_that_does_not_run_says_why(on_path: Path) -> None:
    program(on_path, "echo 'libcuda.so.1: cannot open shared object file' >&2; exit 127")

    with pytest.raises(StartError, match=r"does not run \(libcuda.*WORKBENCH_LLAMA_SERVER=bundled"):
        find_program("")
