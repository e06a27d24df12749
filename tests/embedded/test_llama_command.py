"""The command lines of our llama.cpp servers."""

import configparser
from pathlib import Path

import pytest

from apps.embedded.errors import StartError
from apps.embedded.llama_command import Llama, command, model_names, preset
from apps.embedded.llama_program import LlamaProgram
from apps.embedded.llama_setup import check_program
from apps.embedded.options import Options

PROGRAM = LlamaProgram(path=Path("/opt/llama-server"))
KEY_FILE = Path("/secrets/key")


def llama(*models: str, **values: object) -> Llama:
    given = {"port": 7001, "context_per_slot": 2048, "slots": 4, "program": PROGRAM} | values
    return Llama(models=tuple(map(Path, models)), **given)  # type: ignore[arg-type]


def line(server: Llama) -> str:
    return " ".join(map(str, command(server, KEY_FILE)))


def test_llama_server_owns_a_share_of_the_context_per_slot() -> None:
    written = line(llama("/m/qwen.gguf"))

    assert written.startswith("/opt/llama-server --model /m/qwen.gguf --alias qwen")
    assert "--port 7001 --api-key-file /secrets/key -np 4 -c 8192 " in written


def test_a_persons_flags_come_last_and_win() -> None:
    assert line(llama("/m/qwen.gguf", flags=("-c", "0", "-fit", "on"))).endswith("-c 0 -fit on")


@pytest.mark.parametrize(
    ("flags", "shared"),
    [((), False), (("-fa", "on"), False), (("--kv-unified",), None), (("-np", "2"), None)],
)
def test_flags_may_decide_whether_slots_share_a_cache(
    flags: tuple[str, ...], shared: bool | None
) -> None:
    assert llama("/m/qwen.gguf", flags=flags).shares_cache is shared


def test_several_models_become_a_router(tmp_path: Path) -> None:
    server = llama("/m/a.gguf", "/m/b.gguf", preset_file=tmp_path / "models.ini", models_at_once=2)

    assert f"--models-preset {tmp_path}/models.ini --models-max 2" in line(server)
    assert "--alias" not in line(server)


def test_the_preset_names_every_model_once() -> None:
    models = [Path("/x/q4/qwen.gguf"), Path("/x/q8/qwen.gguf"), Path("/x/100%.gguf")]
    names = configparser.ConfigParser(interpolation=None)
    names.read_string(preset(models))

    assert names.sections() == model_names(models) == ["q4/qwen", "q8/qwen", "100%"]
    assert names["100%"]["model"] == "/x/100%.gguf"


@pytest.mark.parametrize(
    ("values", "several", "reason"),
    [
        ({}, True, r"Several models \(WORKBENCH_CHAT_MODEL\) need llama.cpp's own llama-server"),
        ({"chat_flags": ("-ngl", "9")}, False, "The flags in WORKBENCH_CHAT_FLAGS need"),
        ({"chat_slots": 0}, False, "WORKBENCH_CHAT_SLOTS must be from 1 to 256"),
        ({"chat_context": -1}, False, "WORKBENCH_CHAT_CONTEXT must be"),
    ],
)
def test_what_the_wheel_cannot_do_is_refused(
    values: dict[str, object], several: bool, reason: str, tmp_path: Path
) -> None:
    options = Options(root=tmp_path, data=tmp_path, **values)  # type: ignore[arg-type]

    with pytest.raises(StartError, match=reason):
        check_program(LlamaProgram(), options, several=several)
