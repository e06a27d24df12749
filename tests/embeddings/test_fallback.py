"""Embeddings of the fallback while the default server is away. Real llama.cpp, one killed."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from gguf import PoolingType

from apps.embeddings import canary
from apps.embeddings.cache import embed_texts, identify
from apps.embeddings.models import Embedding
from apps.embeddings.sender import Vectors
from apps.llm.client import close_clients
from apps.llm.errors import Unreachable
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import Target, default_target
from tests.conftest import create_server
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import write_tiny_gguf

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _connections() -> AsyncIterator[None]:
    canary.clear_checked()
    yield
    await close_clients()
    await close_async_redis()


def model_of(process: LlamaProcess) -> Path:
    return Path(process.command[process.command.index("--model") + 1])


async def set_up(big: LlamaProcess, small: LlamaProcess, *, fallback: bool = True) -> Target:
    def create() -> Target:
        create_server(big, "Big box", Use.EMBEDDINGS)
        other = create_server(small, "Small box")
        DefaultServer.objects.update(fallback=other if fallback else None)
        return default_target(Use.EMBEDDINGS)

    return await in_db(create)


async def embed(target: Target, text: str) -> Vectors:
    return await embed_texts(target, [text], lane=Lane.INTERACTIVE)


async def test_the_fallback_embeds_for_a_killed_server(llama_embeddings: LlamaProcess) -> None:
    with LlamaProcess(model_of(llama_embeddings), embeddings=True) as big:
        target = await set_up(big, llama_embeddings)
        before = await identify(target)
        first = await embed(target, "one")
        big.kill()  # the facts still say that it is ready
        second = await embed(target, "two")
    await Server.objects.filter(name="Big box").aupdate(next_check_at=None, checked_at=None)
    away = await in_db(default_target, Use.EMBEDDINGS)
    now = await identify(away)  # by now it is known to be away
    assert (now.target.server.name, now.fingerprint) == ("Small box", before.fingerprint)
    assert np.array_equal(await embed(away, "one"), first), "from the cache of the same model"
    assert np.allclose(await embed(away, "two"), second)
    assert await Embedding.objects.acount() == 2


async def test_a_fallback_that_changed_its_model_is_not_mixed_in(
    llama_embeddings: LlamaProcess, tmp_path: Path
) -> None:
    """It was compared when it was set; what it serves now has to be compared too."""
    other = write_tiny_gguf(tmp_path / "other.gguf", embeddings=True, pooling=PoolingType.LAST)
    with (
        LlamaProcess(model_of(llama_embeddings), embeddings=True) as big,
        LlamaProcess(other, embeddings=True) as small,
    ):
        target = await set_up(big, small)
        embedder = await identify(target)
        await embed(target, "one")
        big.kill()
        with pytest.raises(Unreachable):
            await embed(target, "two")
        await Server.objects.filter(name="Big box").aupdate(next_check_at=None, checked_at=None)
        now = await identify(await in_db(default_target, Use.EMBEDDINGS))
        assert now.fingerprint != embedder.fingerprint, "a classifier refuses this one"
    assert await Embedding.objects.acount() == 1


async def test_without_a_fallback_it_fails(llama_embeddings: LlamaProcess) -> None:
    with LlamaProcess(model_of(llama_embeddings), embeddings=True) as big:
        target = await set_up(big, llama_embeddings, fallback=False)
        await identify(target)
        big.kill()
        with pytest.raises(Unreachable):
            await embed(target, "two")
