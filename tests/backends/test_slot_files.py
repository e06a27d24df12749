"""Slot files of the real llama-server: split and shared caches, a sliding window, a router."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from apps.llm.client import ChatRequest, close_clients
from apps.llm.events import Usage
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, SlotRestores
from apps.servers.services import (
    Target,
    hold_slot,
    process_prompt,
    refresh_server,
    restore_prompt,
    warm_slots,
)
from apps.servers.slot_files.saved_slots import NOT_CACHED, ask_once
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.stacks.llama_servers import chat_server, llama_server
from tests.tuning.planner.tiny_shapes import GEMMA, Shape, write_shape

pytestmark = pytest.mark.django_db(transaction=True)

PREFIX = "You name the days of the week, and nothing else. " * 30


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    await close_clients()
    await close_async_redis()


@pytest.fixture
def saving(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "slots").mkdir()
    return ("-np", "2", "-c", "8192", "--slot-save-path", f"{tmp_path}/slots/")


async def target_of(root: str, model: str) -> Target:
    server = await in_db(Server.objects.create, name="Real", base_url=f"{root}/v1")
    return Target(await refresh_server(server), model)


def request_of(model: str, question: str = ".") -> ChatRequest:
    system, user = {"role": "system", "content": PREFIX}, {"role": "user", "content": question}
    return ChatRequest(model, [system, user], 1)  # type: ignore[list-item]


async def restarted(process: ProgramProcess) -> None:
    process.kill()
    process.start()


async def ask_restored(target: Target, question: str) -> Usage:
    """Ask as a person does, whose prompt is restored first."""
    request = request_of(target.model, question)
    async with hold_slot(target.server, lane=Lane.INTERACTIVE, model=target.model):
        assert await restore_prompt(target, request)
        return (await ask_once(target, request)).usage


@pytest.mark.parametrize("flags", [(), ("--kv-unified",), ("--cache-ram", "0")], ids=str)
async def test_a_prompt_comes_back_after_a_restart(
    flags: tuple[str, ...], tmp_path: Path, model_files: ModelFiles, saving: tuple[str, ...]
) -> None:
    process, root = chat_server(tmp_path, model_files, *saving, *flags)
    with process:
        target = await target_of(root, "alpha")
        await process_prompt(target, request_of("alpha", ""), 1)
        await restarted(process)
        usage = await ask_restored(target, "Go on")
    assert usage.cached_tokens >= len(PREFIX)


async def test_both_slots_begin_with_it(
    tmp_path: Path, model_files: ModelFiles, saving: tuple[str, ...], alice: User
) -> None:
    process, root = chat_server(tmp_path, model_files, *saving)
    with process:
        target = await target_of(root, "alpha")
        assert await warm_slots(target, request_of("alpha"), width=2, owner=alice.pk) == 1
        await restarted(process)
        assert await warm_slots(target, request_of("alpha"), width=2, owner=alice.pk) == 2


@pytest.mark.parametrize(("flags", "restored"), [((), 0), (("--swa-full",), 1)], ids=str)
async def test_a_sliding_window_is_found_out(
    flags: tuple[str, ...], restored: int, tmp_path: Path, saving: tuple[str, ...], alice: User
) -> None:
    model = write_shape(tmp_path / "swa.gguf", Shape("gemma2", window=256, extra=dict(GEMMA)))
    process, root = llama_server(tmp_path, "-m", str(model), "--alias", "swa", *saving, *flags)
    with process:
        target = await target_of(root, "swa")
        found = await warm_slots(target, request_of("swa"), width=2, owner=alice.pk)
    assert found == restored
    restores = await in_db(SlotRestores.objects.get)
    assert restores.reason == ("" if restored else NOT_CACHED)


async def test_a_model_of_a_router_finds_it_after_a_swap(
    tmp_path: Path, model_files: ModelFiles, saving: tuple[str, ...]
) -> None:
    process, root = llama_server(
        tmp_path, "--models-dir", str(model_files.folder), "--models-max", "1", *saving
    )
    with process:
        target = await target_of(root, "alpha")
        await ask_once(target, request_of("alpha", "Hello"))
        target = await fresh(target)
        assert target.saves_slots
        await process_prompt(target, request_of("alpha", ""), 1)
        for model in ("beta", "alpha"):
            short = ChatRequest(model, [{"role": "user", "content": "Hello"}], 1)
            await ask_once(target, short)
        target = await fresh(target)
        usage = await ask_restored(target, "Go on")
    assert usage.cached_tokens >= len(PREFIX)


async def fresh(target: Target) -> Target:
    return Target(await refresh_server(target.server, max_age=timedelta(0)), target.model)
