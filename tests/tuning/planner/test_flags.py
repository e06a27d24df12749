"""Which flags a plan asks for, and which it leaves to the server."""

from typing import Any

import pytest

from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.planner.flags import Files, Flag, flags_of
from apps.tuning.planner.hardware import Hardware, find_hardware
from apps.tuning.planner.uses import Use
from tests.tuning.planner.plans import plan_of
from tests.tuning.planner.test_memory import LLAMA

GPU = find_hardware("RTX 4090")
CPU = find_hardware("CPU, DDR5, two channels")
APPLE = find_hardware("Apple M4 Max")


def flags(use: Use = Use.CHAT, hardware: Hardware = GPU, **given: Any) -> dict[str, Flag]:
    files = given.pop("files", Files("/m/a.gguf"))
    return {
        flag.name: flag for flag in flags_of(plan_of(LLAMA, use, hardware=hardware, **given), files)
    }


@pytest.mark.parametrize("use", Use)
@pytest.mark.parametrize("hardware", [GPU, CPU, APPLE], ids=lambda known: known.name)
def test_every_flag_is_one_of_the_tested_build_and_none_is_removed(
    use: Use, hardware: Hardware
) -> None:
    files = Files("a.gguf", "eye.gguf", "draft.gguf", "keys")
    for name, flag in flags(use, hardware, cache_type="q8_0", files=files).items():
        argument = shipped_table().find(name)
        assert argument is not None
        assert not argument.removed
        assert argument.values == (flag.value is not None)


def test_context_and_slots_are_always_written() -> None:
    found = flags(slots=3, context=2048)
    assert found["--ctx-size"].value == "6144"
    assert found["--parallel"].value == "3"
    assert "3 slots of 2,048 tokens" in found["--ctx-size"].why
    assert "1 slot for" in flags(slots=1)["--parallel"].why


def test_layers_are_left_to_the_server_where_there_is_a_gpu() -> None:
    assert "--gpu-layers" not in flags()
    assert "--gpu-layers" not in flags(hardware=APPLE)
    assert flags(hardware=CPU)["--gpu-layers"].value == "0"


def test_what_the_server_does_by_itself_is_not_written() -> None:
    assert set(flags()) == {"--model", "--alias", "--ctx-size", "--parallel", "--metrics"}


def test_agents_share_a_pool_and_the_flag_depends_on_the_build() -> None:
    found = flags(Use.AGENTS)
    assert found["--kv-unified"].depends_on_build
    assert [name for name, flag in found.items() if flag.depends_on_build] == ["--kv-unified"]


def test_embeddings_take_a_whole_text_in_one_micro_batch() -> None:
    found = flags(Use.EMBEDDINGS)
    assert found["--ubatch-size"].value == "2048"
    assert "--embeddings" in found
    assert "--batch-size" not in found  # 2048 is its default
    longer = flags(Use.DECISIONS)
    assert (longer["--batch-size"].value, longer["--ubatch-size"].value) == ("4096", "4096")
    assert "--embeddings" not in longer


def test_both_halves_of_the_cache_have_the_type() -> None:
    found = flags(cache_type="q8_0")
    assert (found["--cache-type-k"].value, found["--cache-type-v"].value) == ("q8_0", "q8_0")


def test_files_are_named_where_there_are_some() -> None:
    found = flags(files=Files("/m/My model.gguf", "eye.gguf", "draft.gguf", "keys"))
    assert found["--alias"].value == "My-model"
    assert found["--mmproj"].value == "eye.gguf"
    assert found["--model-draft"].value == "draft.gguf"
    assert found["--api-key-file"].value == "keys"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/m/Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q4_K_M"),
        ("ä ö.gguf", "model"),
        ("a b&c.gguf", "a-b-c"),
        ("-x-.gguf", "x"),
    ],
)
def test_the_name_of_a_model_has_plain_characters_alone(path: str, name: str) -> None:
    assert Files(path).name == name
