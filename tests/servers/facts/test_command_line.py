import pytest

from apps.servers.facts.command_line import CommandLine, parse, parse_preset


def read(command: str | list[str]) -> CommandLine:
    found = parse(command)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("command", "slots", "unified", "context", "pool"),
    [
        ("llama-server -m a.gguf", 4, True, None, None),
        ("llama-server -c 16384", 4, True, 16384, 16384),
        ("llama-server -np -1 -c 16384", 4, True, 16384, 16384),
        ("llama-server -c 16384 -np 4", 4, False, 4096, None),
        ("llama-server --ctx-size 16384 --parallel 8", 8, False, 2048, None),
        ("llama-server --parallel=2 -c=1000", 2, False, 512, None),
        ("llama-server -np 3 -c 10000", 3, False, 3584, None),
        ("llama-server -np 8 -c 8192 --kv-unified", 8, True, 8192, 8192),
        ("llama-server -np 8 -c 8192 -kvu", 8, True, 8192, 8192),
        ("llama-server -c 8192 --no-kv-unified", 4, False, 2048, None),
        ("llama-server -np 4 --kv-unified-per-slot 4096", 4, True, 4096, 16384),
        ("llama-server -np 4 -c 9000 --kv-unified-per-slot 4096", 4, True, 4096, 9000),
        ("llama-server -np 1 -c 4096", 1, False, 4096, None),
        ("llama-server -c 0 -np 2", 2, False, None, None),
        ("LLAMA_ARG_N_PARALLEL=6 llama-server -m x", 6, False, None, None),
    ],
)
def test_slots_and_cache(
    command: str, slots: int, unified: bool, context: int | None, pool: int | None
) -> None:
    found = read(command)
    assert (found.slots, found.unified, found.context, found.pool) == (
        slots,
        unified,
        context,
        pool,
    )


@pytest.mark.parametrize(
    "command",
    [
        "/opt/llama.cpp/llama-server \\\n  --port 5800 \\\n  -np 6",
        "llama-server.exe -np 6",
        "docker run --rm -p 5800:8080 ghcr.io/ggml-org/llama.cpp:server -np 6",
        "bash -c 'llama-server -np 6 --port 5800'",
        "llama serve -np 6",
        "llama-server -m 'an open quote -np 6",
        "llama-server -np 6 # -np 2",
        "env CUDA_VISIBLE_DEVICES=0 llama-server -np 6",
    ],
)
def test_however_it_is_started(command: str) -> None:
    assert read(command).slots == 6


@pytest.mark.parametrize("command", ["", "vllm serve qwen", "./run-qwen.sh --np 4", "python x.py"])
def test_another_program_says_nothing(command: str) -> None:
    assert parse(command) is None


def test_a_routers_arguments_are_llama_servers_whatever_its_name() -> None:
    assert read(["/usr/bin/server", "--parallel", "5"]).slots == 5
    assert parse([]) is None


@pytest.mark.parametrize("flag", ["--embedding", "--embeddings"])
def test_embeddings(flag: str) -> None:
    assert read(f"llama-server {flag}").embeddings
    assert not read("llama-server").embeddings


def test_the_fingerprint_tells_commands_apart() -> None:
    assert read("llama-server -np 4").fingerprint == read("llama-server  -np  4").fingerprint
    assert read("llama-server -np 4").fingerprint != read("llama-server -np 5").fingerprint


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("[m]\nmodel = /m.gguf\nparallel = 6\n", 6),
        ("[m]\nnp=2", 2),
        ("[m]\nLLAMA_ARG_N_PARALLEL = 3", 3),
        ("[m]\nparallel = 0", None),
        ("[m]\n", None),
        ("", None),
    ],
)
def test_a_routers_preset(text: str, slots: int | None) -> None:
    assert parse_preset(text) == slots


def test_a_folder_for_slot_files() -> None:
    assert read("llama-server -np 2 --slot-save-path /tmp/slots/").slot_files
    assert not read("llama-server -np 2").slot_files
