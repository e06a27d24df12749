"""What an import makes of a router's INI against the arguments that the real router makes of it."""

import json
import shlex
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import import_servers
from apps.tuning.importing.settings import Setting
from tests.backends.programs import command
from tests.llama_process import free_port
from tests.waiting import wait_until

# What the router adds by itself.
OWN = {"--host", "--port", "--offline", "--alias"}


@contextmanager
def router(presets: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    start = [command("llama-server"), "--models-preset", str(presets), "--offline"]
    with subprocess.Popen([*start, "--port", str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            yield process, f"http://127.0.0.1:{port}/v1/models"
        finally:
            process.kill()


def arguments_of(presets: Path) -> dict[str, list[str]] | None:
    """The words of each model's server; None where the router ends."""
    found: dict[str, list[str]] = {}

    def is_known() -> bool:
        if process.poll() is not None:
            return True
        with suppress(OSError), urllib.request.urlopen(url) as reply:
            models = json.load(reply)["data"]
            found.update({model["id"]: model["status"]["args"][1:] for model in models})
        return bool(found)

    with router(presets) as (process, url):
        wait_until(is_known)
    return found or None


def words_of(settings: tuple[Setting, ...]) -> dict[str, str]:
    """Value by name, under the name that the planner writes or its negation."""
    named = {}
    for setting in settings:
        if setting.argument is not None:
            negated = setting.name.startswith("--no-")
            named[setting.name if negated else setting.argument.name] = setting.value or ""
    return named


def import_words(words: list[str]) -> dict[str, str]:
    """The same of a router's words."""
    [server] = import_servers(shlex.join(["llama-server", *words]), shipped_table())
    return {name: value for name, value in words_of(server.settings).items() if name not in OWN}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("c = 512 # a comment\nnp=2;another", id="comments"),
        pytest.param("c = 512\nc = 1024", id="the last of a key counts"),
        pytest.param("c = 1\n[a]\nmodel = b.gguf\nnp = 3", id="a section twice"),
        pytest.param("LLAMA_ARG_N_PARALLEL = 2", id="environment variable"),
        pytest.param("alias = x=y", id="equals sign in a value"),
        pytest.param("\n".join(f"{n} = true" for n in ("metrics", "perf", "kvu")), id="true"),
        pytest.param("metrics = yes\nperf = no\nkv-unified = FALSE", id="all else is yes"),
        pytest.param("metrics = \nkv-unified = ", id="empty is yes"),
        pytest.param("metrics = false\nembeddings = 0\nperf = off", id="no"),
        pytest.param("kv-unified = disabled\nno-perf = disabled", id="disabled"),
        pytest.param("no-perf = true\nno-kv-unified = 0", id="negated names"),
        pytest.param("no-host = 0", id="only a negated name"),
    ],
)
def test_a_section_means_what_the_router_makes_of_it(lines: str, tmp_path: Path) -> None:
    text = f"version = 1\n[*]\nthreads = 1\n[a]\nmodel = a.gguf\n{lines}\n"
    presets = tmp_path / "presets.ini"
    presets.write_text(text)
    [server] = import_servers(text, shipped_table())
    arguments = arguments_of(presets)
    assert arguments is not None
    assert server.problems == ()
    ours = {name: value for name, value in words_of(server.settings).items() if name not in OWN}
    assert ours == import_words(arguments["a"])


@pytest.mark.parametrize("line", ["--ctx-size = 512", "-c = 512", "ctx_size = 512", "n-ctx = 5"])
def test_a_key_that_stops_the_router_is_a_problem(line: str, tmp_path: Path) -> None:
    text = f"version = 1\n[a]\nmodel = a.gguf\n{line}\n"
    presets = tmp_path / "presets.ini"
    presets.write_text(text)
    assert arguments_of(presets) is None
    [server] = import_servers(text, shipped_table())
    assert len(server.problems) == 1


@pytest.mark.parametrize("line", [" c = 512", "metrics"])
def test_a_line_that_the_router_does_not_read_is_refused(line: str, tmp_path: Path) -> None:
    text = f"version = 1\n[a]\nmodel = a.gguf\n{line}\n"
    presets = tmp_path / "presets.ini"
    presets.write_text(text)
    assert arguments_of(presets) is None
    with pytest.raises(PlanError, match="Line 4 of the INI"):
        import_servers(text, shipped_table())
