"""A prompt is processed on one slot of a real server, and restored on the others."""

import pytest
from django.contrib.auth.models import User

from apps.llm import errors, slot_files
from apps.llm.client import ChatRequest
from apps.runtime.async_db import in_db
from apps.servers.models import Server, SlotFile, SlotRestores
from apps.servers.services import choose_target, refresh_server, warm_slots
from apps.servers.slot_files import saved_slots, store
from apps.servers.targets import Target
from tests.conftest import create_server
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)

PREFIX = "You name the days of the week, and nothing else. " * 20


@pytest.fixture
def saving_server(saving_llama: LlamaProcess) -> Server:
    """A server that saves slots, freshly started."""
    saving_llama.restart()
    return create_server(saving_llama, "Saving")


async def target_of(server: Server) -> Target:
    return choose_target(await refresh_server(server))


def request_of(target: Target, system: str = PREFIX, question: str = ".") -> ChatRequest:
    return ChatRequest(
        target.model,
        [{"role": "system", "content": system}, {"role": "user", "content": question}],
        8,
    )


async def restores() -> SlotRestores:
    return await in_db(SlotRestores.objects.get)


async def test_the_second_slot_restores_what_the_first_has_processed(
    saving_server: Server, alice: User
) -> None:
    target = await target_of(saving_server)
    request = request_of(target)
    assert await warm_slots(target, request, width=2, owner=alice.pk) == 1
    for slot in (0, 1):
        usage = (await saved_slots.ask_once(target, request_of(target, question="Go"), slot)).usage
        assert usage.cached_tokens >= len(PREFIX)
    found = await restores()
    assert (found.count, found.failed_in_row) == (1, 0)
    file = await in_db(SlotFile.objects.get)
    assert file.seconds
    assert file.tokens > len(PREFIX)


async def test_a_restarted_server_processes_it_no_more(
    saving_server: Server, saving_llama: LlamaProcess, alice: User
) -> None:
    target = await target_of(saving_server)
    await warm_slots(target, request_of(target), width=2, owner=alice.pk)
    saving_llama.restart()
    assert await warm_slots(target, request_of(target), width=2, owner=alice.pk) == 2
    found = await restores()
    assert found.count == 3
    assert found.seconds_saved > 0


async def test_a_file_that_is_gone_is_a_failure_and_processed_again(
    saving_server: Server, saving_llama: LlamaProcess, alice: User
) -> None:
    target = await target_of(saving_server)
    await warm_slots(target, request_of(target), width=2, owner=alice.pk)
    await warm_slots(target, request_of(target, f"Also: {PREFIX}"), width=2, owner=alice.pk)
    for file in (saving_llama.folder / "slots").iterdir():
        file.unlink()
    assert await warm_slots(target, request_of(target), width=2, owner=alice.pk) == 0
    assert (await restores()).failed_in_row == 1
    assert not await in_db(SlotFile.objects.exclude(prefix="").exists)  # they share a folder
    assert await warm_slots(target, request_of(target), width=2, owner=alice.pk) == 1
    assert (await restores()).failed_in_row == 0


async def test_after_failures_in_a_row_nothing_is_restored(
    saving_server: Server, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = await target_of(saving_server)

    async def restore_nothing(files: slot_files.SlotFiles, slot: int, name: str) -> int:
        """As a server does whose model has a sliding window."""
        await files.erase(slot)
        return await in_db(lambda: SlotFile.objects.get(name=name).tokens)

    monkeypatch.setattr(slot_files.SlotFiles, "restore", restore_nothing)
    for number in range(4):
        request = request_of(target, f"{number} {PREFIX}")
        assert await warm_slots(target, request, width=2, owner=alice.pk) == 0
    found = await restores()
    assert found.failed_in_row == 3
    assert found.reason == saved_slots.NOT_CACHED
    assert await in_db(SlotFile.objects.count) == 3


async def test_a_server_without_a_folder_is_asked_nothing(server: Server, alice: User) -> None:
    target = await target_of(server)
    assert await warm_slots(target, request_of(target), width=4, owner=alice.pk) == 0
    assert not await in_db(SlotFile.objects.exists)


async def test_a_short_prompt_is_not_worth_a_file(saving_server: Server, alice: User) -> None:
    target = await target_of(saving_server)
    request = request_of(target, "You name days.")
    assert await warm_slots(target, request, width=2, owner=alice.pk) == 0
    assert not await in_db(SlotFile.objects.exists)


async def test_an_evicted_file_is_emptied_with_the_next_restore(
    saving_server: Server, saving_llama: LlamaProcess, alice: User
) -> None:
    target = await target_of(saving_server)
    for system in (PREFIX, f"Also: {PREFIX}"):
        await warm_slots(target, request_of(target, system), width=2, owner=alice.pk)
    evicted, kept = await in_db(lambda: list(SlotFile.objects.order_by("pk")))
    await in_db(store.drop_source, "")
    await in_db(lambda: SlotFile.objects.filter(pk=kept.pk).update(prefix=kept.prefix))
    await warm_slots(target, request_of(target, f"Also: {PREFIX}"), width=2, owner=alice.pk)
    path = saving_llama.folder / "slots" / evicted.name
    assert path.stat().st_size < 1000 < evicted.size
    await in_db(evicted.refresh_from_db)
    assert evicted.size == path.stat().st_size


async def test_a_folder_that_takes_no_files_turns_it_off(
    saving_server: Server, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = await target_of(saving_server)

    async def fail(files: slot_files.SlotFiles, slot: int, name: str) -> slot_files.SavedSlot:
        raise errors.ServerFailed("The disk is full.")

    monkeypatch.setattr(slot_files.SlotFiles, "save", fail)
    for _ in range(3):
        with pytest.raises(errors.ServerFailed):
            await warm_slots(target, request_of(target), width=2, owner=alice.pk)
    assert await warm_slots(target, request_of(target), width=2, owner=alice.pk) == 0
    assert (await restores()).reason == "The disk is full."


async def test_behind_llama_swap_the_model_s_own_routes_are_used(
    saving_llama: LlamaProcess, alice: User
) -> None:
    saving_llama.restart()
    command = "llama-server -m red.gguf -np 2 -c 8192 --slot-save-path /slots/"
    models = [Model("red", slots=2, loaded=True, command=command)]
    with Standin("llama-swap", saving_llama, models=models) as swap:
        server = await in_db(server_at, swap, swap.config.api_key)
        target = Target(await refresh_server(server), "red")
        assert target.saves_slots
        restored = await warm_slots(target, request_of(target), width=2, owner=alice.pk)
    found = await restores()
    assert (restored, found.failed_in_row, found.reason) == (1, 0, "")
