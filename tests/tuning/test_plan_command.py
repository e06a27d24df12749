"""`manage.py plan`, from the file to what a person reads and copies."""

import shutil
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from apps.tuning.errors import PlanError
from apps.tuning.model_file import model_bytes, read_model_file
from tests.tuning.planner.tiny_shapes import SHAPES, write_shape


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shape(tmp_path_factory.mktemp("models") / "tiny.gguf", SHAPES["GQA"])


def plan(*arguments: object) -> str:
    out = StringIO()
    call_command("plan", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_plan_prints_memory_fit_command_and_reasons(model: Path) -> None:
    text = plan(model, "--gpu", "RTX 4090", "--slots", 4, "--context", 8192)
    for line in (
        "RTX 4090: 24.00 GiB, bandwidth 1,008 GB/s",
        "Memory for 4 slots of 8,192 tokens, f16",
        "  KV cache             16.0 MiB",
        "of 24.00 GiB: fits",
        "  --parallel 4 \\",
        "  --parallel: 4 slots for conversations, one beside another.",
        "Warning: No API key",
    ):
        assert line in text
    assert "Speed: at most" in text


def test_plan_says_what_is_not_reported_and_what_does_not_fit(model: Path) -> None:
    text = plan(model, "--memory", 0.4)
    assert "bandwidth not reported" in text
    assert "does not fit. About 0 of 2 layers do" in text
    assert "Speed: not estimated" in text
    assert "Speed: not reported" in plan(model, "--memory", 4)


def test_plan_counts_projector_and_draft(model: Path) -> None:
    text = plan(model, "--memory", 4, "--mmproj", model, "--draft", model, "--use", "agents")
    size = f"{model.stat().st_size / 1024**2:.1f} MiB"
    assert [line.split()[-2:] for line in text.splitlines() if line.startswith("  Draft")] == [
        size.split()
    ]
    assert "Memory for 2 slots that share 131,072 tokens" in text
    assert "--kv-unified: One pool" in text
    assert "Depends on your build." in text


@pytest.mark.parametrize("name", ["compose", "llama-swap", "litellm", "olla"])
def test_plan_writes_yaml_and_nothing_else(name: str, model: Path) -> None:
    found = yaml.safe_load(plan(model, "--gpu", "RTX 4090", "--format", name))
    first = {"compose": "services", "llama-swap": "models", "litellm": "model_list"}
    assert first.get(name, "discovery") in found


def test_plan_writes_the_command_and_a_router_preset(model: Path) -> None:
    given = (model, "--memory", 4, "--api-key-file", "keys")
    assert plan(*given, "--format", "command").endswith("--api-key-file keys\n")
    assert "[tiny]\n" in plan(*given, "--format", "router")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name the hardware"),
        (("--gpu", "RTX 9999"), "is not one entry"),
        (("--memory", "-1"), "memory must be"),
        (("--memory", "nan"), "memory must be"),
        (("--memory", "4", "--gpus", "0"), "1 to 64 GPUs"),
        (("--memory", "4", "--slots", "0"), "number of slots"),
        (("--memory", "4", "--mmproj", "none.gguf"), "none.gguf cannot be read"),
    ],
)
def test_plan_refuses_with_the_reason(arguments: tuple[str, ...], said: str, model: Path) -> None:
    with pytest.raises(CommandError, match=said):
        plan(model, *arguments)


def test_a_missing_file_and_another_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read: No such file"):
        read_model_file(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("not a model, but long enough to be one")
    with pytest.raises(PlanError, match="not a GGUF file"):
        read_model_file(tmp_path / "text.gguf")


def test_the_size_of_a_model_is_that_of_all_its_parts(model: Path, tmp_path: Path) -> None:
    parts = [tmp_path / f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for part in parts:
        shutil.copy(model, part)
    (tmp_path / "big.gguf").write_bytes(b"another")
    assert model_bytes(parts[0]) == 3 * model.stat().st_size


def test_plan_imports_a_configuration(model: Path, tmp_path: Path) -> None:
    config = tmp_path / "start.sh"
    config.write_text("llama-server -m a.gguf -c 8192 -np 2 --mlock")
    text = plan("--import", config)
    assert "llama-server: 2 slots of 4,096 tokens, f16" in text
    assert "Memory: not reported" in text
    assert "Error: --mlock" in text
    assert "  KV cache              4.0 MiB" in plan(model, "--import", config)
    assert "of 1.00 GiB: fits" in plan(model, "--import", config, "--memory", 1)
    config.write_text(f"llama-server -m {model} -c 8192 -np 2")
    assert "  KV cache              4.0 MiB" in plan("--import", config)


def test_plan_asks_the_named_build_for_its_arguments(tmp_path: Path) -> None:
    config, program = tmp_path / "start.sh", tmp_path / "llama-server"
    config.write_text("llama-server --mlock -c 8192")
    program.write_text("#!/bin/sh\nprintf -- '--mlock\\n-c, --ctx-size N\\n'")
    program.chmod(0o755)
    given = ("--import", config, "--llama-server")
    assert "Error:" not in plan(*given, program)
    with pytest.raises(CommandError, match="does not read like that of llama-server"):
        plan(*given, "/bin/true")
    with pytest.raises(CommandError, match="does not work"):
        plan(*given, tmp_path / "none")


def test_plan_refuses_what_it_cannot_import(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="no text in UTF-8"):
        plan("--import", tmp_path / "binary")
    with pytest.raises(CommandError, match="cannot be read"):
        plan("--import", tmp_path / "none")
    with pytest.raises(CommandError, match="Name a model file, or"):
        plan("--memory", 4)


def test_plan_writes_a_preset() -> None:
    text = plan("--preset", "16 GB")
    assert "(chat): " in text
    assert "Together 14.0" in text
    assert "--port 8082" in text
    assert (
        "together" in yaml.safe_load(plan("--preset", "16 GB", "--format", "llama-swap"))["groups"]
    )


def test_plan_keeps_several_models_in_memory(model: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(model, tmp_path / "embed.gguf"))
    given = (model, "--gpu", "RTX 3060", "--with", f"{other}=embeddings")
    assert "embed (embeddings): " in plan(*given)
    assert "[embed]" in plan(*given, "--format", "router")
    for wrong, said in (("embed.gguf", "write FILE=USE"), (f"{other}=poetry", "is no use")):
        with pytest.raises(CommandError, match=said):
            plan(model, "--gpu", "RTX 3060", "--with", wrong)
    with pytest.raises(CommandError, match="Several models are written as"):
        plan(*given, "--format", "compose")
