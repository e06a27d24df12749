"""Questions that outgrow a KV cache all slots share, of which nothing says that it is shared."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import AsyncClient

from apps.chat.models import Message, Status
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import refresh_server
from tests.chat.conftest import ask, events_of, text_of
from tests.servers.shared_cache import SHARED_TOKENS, SharedCacheLlama

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def shared(tiny_model: Path) -> Iterator[SharedCacheLlama]:
    with SharedCacheLlama(tiny_model, "--metrics") as process:
        yield process


async def test_prompts_that_are_longer_than_estimated_are_answered_one_after_the_other(
    alice_api: AsyncClient, shared: SharedCacheLlama
) -> None:
    server = Server(name="Shared", base_url=shared.base_url, kv_unified=True)
    server.set_key(shared.api_key)
    await in_db(server.save)
    await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server)
    assert (await refresh_server(server)).pool() == SHARED_TOKENS
    # A character is a token of this model, not a quarter of one: two fit together, not four.
    asking = [ask(alice_api, f"{n}" + "x" * 110, max_tokens=90) for n in range(4)]
    asked = await asyncio.gather(*asking)
    for _, answer in asked:
        await events_of(alice_api, answer)
        saved = await Message.objects.aget(pk=answer)
        assert (saved.status, saved.error_detail) == (Status.COMPLETE, "")


async def test_nobody_sees_the_first_overflow_and_it_is_learned(
    alice_api: AsyncClient, shared: SharedCacheLlama
) -> None:
    server = Server(name="Shared", base_url=shared.base_url)
    server.set_key(shared.api_key)
    await in_db(server.save)
    await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server)
    assert (
        await refresh_server(server)
    ).pool() is None  # four slots of their own, as far as is known

    for _ in range(20):  # until answers were written at the same time
        with shared.slowed():
            asked = [await ask(alice_api, f"Question {n}", max_tokens=300) for n in range(4)]
        told = await asyncio.gather(*(events_of(alice_api, answer) for _, answer in asked))

        for (_, answer), events in zip(asked, told, strict=True):
            saved = await Message.objects.aget(pk=answer)
            assert (saved.status, saved.error_detail) == (Status.COMPLETE, "")
            assert saved.content == text_of(events)
            assert saved.content
        known = await in_db(Server.objects.get)
        if known.unified():
            break
    assert (known.unified(), known.pool()) == (True, SHARED_TOKENS)
    [advice] = [sentence for sentence in known.advice if "share one KV cache" in sentence]
    assert "-np 4" in advice
