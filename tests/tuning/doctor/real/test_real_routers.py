"""The doctor at a real router, which reports the commands of its models."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gguf
import pytest
from asgiref.sync import async_to_sync

from apps.llm.client import close_clients
from apps.monitoring.history.sampling import take_samples
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, Use
from apps.servers.services import load_model, refresh_server
from tests.backends.stacks.llama_servers import KEY, llama_server
from tests.tiny_gguf import TOOL_TEMPLATE, write_tiny_gguf
from tests.tuning.doctor.command import doctor
from tests.tuning.doctor.real.servers import add
from tests.tuning.planner.tiny_shapes import Shape, write_shape

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = {"parallel": "4", "c": "16384"}
EMBEDDING = {"embeddings": "true", "parallel": "2", "c": "4096", "ub": "2048"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("alpha", "beta"):
        write_tiny_gguf(folder / f"{name}.gguf", template=TOOL_TEMPLATE)
    write_shape(folder / "sliding.gguf", Shape("gemma3", window=128, layers=7))
    (folder / "tools.jinja").write_text(TOOL_TEMPLATE)
    write_tiny_gguf(folder / "embed.gguf", embeddings=True, pooling=gguf.PoolingType.MEAN)
    return folder


@contextmanager
def routing(
    folder: Path, models: Path, use: Use = Use.GENERATION, **presets: dict[str, str]
) -> Iterator[Server]:
    """A router with one model for each name, of which one at a time is in memory."""
    lines = ["version = 1"]
    for name, settings in presets.items():
        settings = {"model": str(models / f"{name}.gguf"), **settings}
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in settings.items())]
    file = folder / "presets.ini"
    file.write_text("\n".join(lines))
    process, root = llama_server(
        folder, "--models-preset", str(file), "--models-max", "1", "--api-key", KEY, name="router"
    )
    with process:
        yield add(f"{root}/v1", use=use)


async def _load(server: Server, name: str) -> None:
    try:
        await load_model(await refresh_server(server), name)
    finally:
        await close_clients()
        await close_async_redis()


def load(server: Server, name: str) -> None:
    async_to_sync(_load)(server, name)


def codes(text: str) -> list[str]:
    return re.findall(r"\[([a-z-]+)\]$", text, re.MULTILINE)


@pytest.mark.parametrize("more", [{}, {"cache-reuse": "64"}], ids=["plain", "with --cache-reuse"])
def test_doctor_says_nothing_of_a_healthy_model(
    more: dict[str, str], tmp_path: Path, models: Path
) -> None:
    with routing(tmp_path, models, alpha={**CHAT, **more}) as server:
        load(server, "alpha")
        assert doctor() == (0, "", "")


def test_doctor_names_the_flags_that_lose_the_cache(tmp_path: Path, models: Path) -> None:
    preset = {**CHAT, "slot-prompt-similarity": "1.0", "cache-ram": "0"}
    with routing(tmp_path, models, alpha=preset) as server:
        load(server, "alpha")
        code, text, notes = doctor()
    assert (code, notes, codes(text)) == (1, "", ["prompt-cache"])
    assert "The command has -sps 1.0" in text
    assert "The command has --cache-ram 0" in text
    assert "Flags: -sps 0.1 --cache-ram 8192" in text


def test_doctor_names_cache_reuse_that_a_sliding_window_cannot_use(
    tmp_path: Path, models: Path
) -> None:
    template = str(models / "tools.jinja")
    preset = {**CHAT, "cache-reuse": "64", "chat-template-file": template}
    with routing(tmp_path, models, sliding=preset) as server:
        load(server, "sliding")
        code, text, notes = doctor()
    assert (code, notes, codes(text)) == (1, "", ["no-cache-reuse"])
    assert "in its first character alone, " in text
    assert "Flags: --cache-reuse 0" in text


def test_doctor_compares_the_pooling_with_the_file(tmp_path: Path, models: Path) -> None:
    preset = {**EMBEDDING, "pooling": "last"}
    with routing(tmp_path, models, Use.EMBEDDINGS, embed=preset) as server:
        load(server, "embed")
        code, text, notes = doctor()
    assert (code, notes, codes(text)) == (1, "", ["wrong-pooling"])
    assert "The command has --pooling last. The model’s file says mean." in text


def test_doctor_names_models_that_take_turns(tmp_path: Path, models: Path) -> None:
    with routing(tmp_path, models, alpha=CHAT, beta=CHAT) as server:
        begun = time.time() - 300
        for turn, name in enumerate(("alpha", "beta") * 4):
            load(server, name)
            take_samples(begun + 30 * turn)
        code, text, notes = doctor()
    assert (code, notes, codes(text)) == (1, "", ["swapping"])
    assert "7 times within ten minutes" in text
