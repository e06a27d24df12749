"""Slots saved as files by a real llama.cpp, and restored."""

from collections.abc import AsyncIterator

import pytest

from apps.llm import errors
from apps.llm.client import ChatRequest, Client
from apps.llm.endpoint import Endpoint
from apps.llm.events import Usage
from apps.llm.slot_files import SlotFiles
from tests.llama_process import LlamaProcess

PREFIX = "You name the days of the week. " * 20


@pytest.fixture
async def client(saving_llama: LlamaProcess) -> AsyncIterator[Client]:
    client = Client(Endpoint(saving_llama.base_url, saving_llama.api_key))
    yield client
    await client.aclose()


async def ask(client: Client, slot: int, question: str) -> Usage:
    messages = [
        {"role": "system", "content": PREFIX},
        {"role": "user", "content": question},
    ]
    request = ChatRequest("tiny", messages, 1, {"id_slot": slot})  # type: ignore[arg-type]
    return (await client.complete(request)).usage


async def test_a_saved_slot_is_restored_into_another(
    client: Client, saving_llama: LlamaProcess
) -> None:
    files = SlotFiles(client, "tiny")
    await ask(client, 0, "one")
    saved = await files.save(0, "days.bin")
    assert saved.tokens > len(PREFIX)
    assert saved.size == (saving_llama.folder / "slots" / "days.bin").stat().st_size
    await files.erase(1)
    assert await files.restore(1, "days.bin") == saved.tokens
    usage = await ask(client, 1, "two")
    assert usage.cached_tokens >= len(PREFIX)


async def test_an_erased_slot_leaves_a_file_of_some_bytes(client: Client) -> None:
    files = SlotFiles(client, "tiny")
    await files.erase(1)
    saved = await files.save(1, "empty.bin")
    assert saved.tokens == 0
    assert saved.size < 1000


@pytest.mark.parametrize("name", ["none.bin", "../days.bin", ""])
async def test_a_file_that_cannot_be_restored_is_refused(client: Client, name: str) -> None:
    with pytest.raises(errors.BadRequest):
        await SlotFiles(client, "tiny").restore(1, name)


async def test_a_server_without_a_folder_refuses(client: Client, llama: LlamaProcess) -> None:
    assert await SlotFiles(client, "tiny").is_supported() is True
    without = Client(Endpoint(llama.base_url, llama.api_key))
    files = SlotFiles(without, "tiny")
    assert await files.is_supported() is False
    with pytest.raises(errors.NotSupported, match="slot-save-path"):
        await files.save(0, "days.bin")
    await without.aclose()
