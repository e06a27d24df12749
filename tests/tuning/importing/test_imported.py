"""What pasted configurations mean, what is wrong with them, and what they will need."""

from typing import Any

import pytest

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import ImportedServer, import_servers
from apps.tuning.planner import outputs
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import GIB, find_hardware
from apps.tuning.planner.kv_cache import KvCache, kv_bytes
from apps.tuning.planner.memory import total_bytes
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.uses import Use
from tests.tuning.planner.plans import plan_of, server_of
from tests.tuning.planner.test_memory import LLAMA

SWAP = """
macros:
  start: llama-server --port ${PORT}
  long: ${start} -c 8192 -m /models/${MODEL_ID}.gguf
models:
  one:
    cmd: |
      ${long} -np 2
      # as many as there are people
      --metrics
    env: [LLAMA_API_KEY=sk-1, HOME=/tmp]
  two: {cmd: llama-server -m b.gguf --embeddings, ttl: 60}
"""
ROUTER = """version = 1
[*]
parallel = 4 ; slots of each
metrics = true
[chat]
model = /models/a.gguf
c = 16384
kv-unified = false
LLAMA_ARG_CACHE_TYPE_K = q8_0
load-on-startup = true
"""


def imported(text: str, **given: Any) -> list[ImportedServer]:
    return import_servers(text, shipped_table(), **given)


def test_a_command_is_read_with_its_comments_and_continued_lines() -> None:
    [server] = imported(
        "CUDA_VISIBLE_DEVICES=0 LLAMA_ARG_UBATCH=256 /opt/llama-server \\\n -m '/m/a b.gguf' \\\n"
        " -c 8192 -np 4 -ctk q8_0 --metrics --api-key sk-secret"
    )
    assert server.model == "/m/a b.gguf"
    assert server.cache == KvCache(8192, slots=4, key_type="q8_0", ubatch=256)
    assert (server.problems, server.warnings) == ((), ())
    assert server.slots == "4 slots of 2,048 tokens, q8_0"
    shown = [setting.safe_text for setting in server.settings]
    assert "--api-key ••••" in shown
    assert "sk-secret" not in str(shown)
    assert "number of server slots" in server.settings[3].meaning


def test_a_llama_swap_yaml_is_read_with_its_macros_and_environment() -> None:
    one, two = imported(SWAP)
    assert (one.name, one.model) == ("one", "/models/one.gguf")
    assert one.cache == KvCache(8192, slots=2)
    assert one.warnings == ()
    assert "LLAMA_API_KEY ••••" in [setting.safe_text for setting in one.settings]
    assert (two.model, two.cache) == ("b.gguf", None)


def test_a_router_ini_is_read_with_what_all_models_share() -> None:
    [server] = imported(ROUTER)
    assert (server.name, server.model, server.problems) == ("chat", "/models/a.gguf", ())
    assert server.cache == KvCache(16_384, slots=4, key_type="q8_0")


@pytest.mark.parametrize("use", Use)
@pytest.mark.parametrize("write", ["command", "llama_swap", "router_presets"])
def test_what_a_plan_writes_means_the_plan(write: str, use: Use) -> None:
    plan = plan_of(LLAMA, use, hardware=find_hardware("RTX 4090"), cache_type="q8_0")
    server = server_of(plan, Files("/m/a.gguf", "/m/eye.gguf", "/m/draft.gguf"))
    text = outputs.command(server) if write == "command" else getattr(outputs, write)([server])
    [found] = imported(text, shape_of=lambda _: LLAMA, use=use)
    assert found.problems == ()
    assert found.cache == plan.cache
    assert total_bytes(found.parts) == sum(
        part.bytes or 0 for part in plan.parts if part.name != "GPU runtime"
    )


@pytest.mark.parametrize(
    ("flags", "cache"),
    [
        ("-c 4096", KvCache(4096, slots=4, unified=True)),
        ("-np -1 -no-kvu -c 4096", KvCache(4096, slots=4, unified=True)),
        ("-np 2 -kvu -c 4096", KvCache(4096, slots=2, unified=True)),
        ("-np 2 --kv-unified-per-slot 2048", KvCache(4096, slots=2)),
        ("-np 1", KvCache(131_072)),
    ],
)
def test_defaults_are_those_of_llama_server(flags: str, cache: KvCache) -> None:
    [server] = imported(f"llama-server {flags}", shape_of=lambda _: LLAMA)
    assert server.cache == cache
    assert server.parts[1].bytes == kv_bytes(LLAMA, cache)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--mlock", "Use --load-mode mlock."),
        ("--draft 4", "use --spec-draft-n-max"),
        ("--n-ctx 4096", "Use --ctx-size."),
        ("--ctx-size=4096", "write a space"),
        ("--paralel 4", "Use --parallel."),
        ("--frobnicate 4", "Leave it out."),
        ("-fa -c 4096", "-fa needs a value."),
        ("-c many", "whole number, not “many”"),
        ("-ctk q9", "must be one of f32"),
        ("-np 5000", "more than the 256 slots"),
        ("stray", "“stray” stands where a flag is expected."),
    ],
)
def test_what_is_wrong_is_named_once_with_what_to_do(flags: str, said: str) -> None:
    [server] = imported(f"llama-server -m a.gguf {flags}")
    [problem] = server.problems
    assert said in problem


def test_names_that_are_not_read_in_an_ini_or_the_environment_are_named() -> None:
    [server] = imported("[a]\nmodel = a.gguf\nn-ctx = 5\n")
    assert [problem.split()[0] for problem in server.problems] == ["--n-ctx"]
    [server] = imported("LLAMA_ARG_PARALLEL=4 llama-server -m a.gguf")
    assert "Use LLAMA_ARG_N_PARALLEL." in server.problems[0]


def test_risks_of_a_configuration_are_those_of_a_plan() -> None:
    [server] = imported("llama-server -c 2048 -np 8 -ngl 99")
    assert [warning.split()[0] for warning in server.warnings] == [
        "--gpu-layers",
        "Only",
        "No",
        "No",
    ]


def test_risks_depend_on_what_the_server_is_for() -> None:
    pool = "llama-server -c 16384 -np 4 -kvu --metrics --api-key x"
    assert imported(pool)[0].warnings == ()
    assert "unified pool" in imported(pool, use=Use.GENERATION)[0].warnings[0]
    vectors = imported(f"{pool} -no-kvu --embeddings", use=Use.GENERATION)
    assert "micro-batch" in vectors[0].warnings[0]


def test_each_server_is_measured_with_its_own_model() -> None:
    def shape_of(path: str | None) -> ModelShape | None:
        if path == "c.gguf":
            raise PlanError("c.gguf is not a GGUF file.")
        return LLAMA if path == "a.gguf" else None

    text = "".join(f"[{name}]\nmodel = {name}.gguf\nc = 4096\nnp = 1\n" for name in "abc")
    a, b, c = imported(text, shape_of=shape_of)
    assert a.needed_bytes > 4 * GIB
    assert (b.parts, b.problems) == ((), ())
    assert c.problems == ("c.gguf is not a GGUF file.",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("x" * 70_000, "at most 65,536"),
        ("python train.py", "no llama-server in the command"),
        ("llama-server -m 'a.gguf", "quotation mark"),
        ("llama-server " + "a " * 2000, "at most 1,024"),
        ("[a]\nmodel", "Line 2 of the INI"),
        ("[*]\nc = 1", "names no model"),
        ("models: [a]", "not a mapping"),
        ("models:\n  a: {ttl: 5}", "no text “cmd”"),
        ("models:\n  a: {cmd: vllm serve}", "no llama-server in the command of “a”"),
        ("models:\n  a: [", "Line 2 is not YAML"),
        ("models: " + "[" * 40, "nested more than 16"),
        ("a: &a [1]\nb: &b [*a, *a]\nmodels: {}", "anchor"),
        ("models:\n a: !!python/object/apply:os.system [id]", "not YAML"),
        ("macros: {a: " + "b" * 9000 + "}\nmodels:\n m:\n  cmd: " + "${a}" * 9, "too long"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        imported(text)
