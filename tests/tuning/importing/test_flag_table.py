"""The shipped argument table against the installed build, and what that build refuses."""

import subprocess
from dataclasses import replace

import pytest

from apps.tuning.importing.flag_table import REPLACED, TESTED_HELP, parse_help, shipped_table
from apps.tuning.importing.imported import import_servers
from tests.backends.programs import command


def llama_server(*words: str) -> str:
    """What it says before it ends: the model is missing."""
    ended = subprocess.run(
        [command("llama-server"), *words, "--offline", "-m", "/none.gguf"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return ended.stdout + ended.stderr


def test_the_help_is_read_with_names_values_meaning_and_variable() -> None:
    context, fast = (shipped_table().find(name) for name in ("--ctx_size", "--no-perf"))
    assert context is not None
    assert fast is not None
    assert (context.names, context.values) == (("-c", "--ctx-size"), 1)
    assert context.environment == "LLAMA_ARG_CTX_SIZE"
    assert context.meaning.startswith("size of the prompt context")
    assert (fast.name, fast.values) == ("--perf", 0)
    ends = shipped_table().find("--control-vector-layer-range")
    assert ends is not None
    assert ends.values == 2
    assert parse_help("usage: cat [FILE]").arguments == {}


def test_the_shipped_table_is_that_of_the_installed_build() -> None:
    said = subprocess.run(
        [command("llama-server"), "--help"], capture_output=True, text=True, check=True
    ).stdout
    installed, shipped = (
        {name: replace(found, meaning="") for name, found in parse_help(text).arguments.items()}
        for text in (said, TESTED_HELP.read_text())
    )
    assert installed == shipped


@pytest.mark.parametrize("name", [name for name in REPLACED if name.startswith("-")])
def test_what_is_called_unknown_is_refused_by_the_build(name: str) -> None:
    assert f"invalid argument: {name}" in llama_server(name)
    assert shipped_table().find(REPLACED[name].split()[0]) is not None


@pytest.mark.parametrize(
    "flags",
    ["--draft 4", "-c many", "-ctk q9", "--ctx-size=4096", "-fa -c 4096", "stray"],
)
def test_what_is_called_wrong_stops_the_build(flags: str) -> None:
    [server] = import_servers(f"llama-server {flags}", shipped_table())
    assert len(server.problems) == 1
    assert "load_model" not in llama_server(*flags.split())


@pytest.mark.parametrize("flags", ["--ctx_size 512 -np 2 -kvu", "-ctk q8_0 -fa on -lm mlock"])
def test_what_is_called_right_reaches_the_model(flags: str) -> None:
    [server] = import_servers(f"llama-server {flags}", shipped_table())
    assert server.problems == ()
    assert "load_model" in llama_server(*flags.split())
