"""Models that look alike to their server are told apart by their vectors. Real llama.cpp."""

from collections.abc import AsyncIterator

import numpy as np
import pytest

from apps.embeddings import canary
from apps.embeddings.cache import embed_texts, identify
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.llm.client import close_clients
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, Use
from apps.servers.services import Target, default_target
from tests.conftest import create_server
from tests.llama_process import LlamaProcess
from tests.stack import cached_embedding_model

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def target(embedding_server: Server) -> AsyncIterator[Target]:
    canary.clear_checked()
    yield await in_db(default_target, Use.EMBEDDINGS)
    await close_clients()
    await close_async_redis()


def replace_model() -> None:
    """What was known of the model is of another one: of the same name, size and width."""
    known = EmbeddingModel.objects.get()
    assert known.canary is not None
    other = np.frombuffer(known.canary, dtype="<f4")[::-1]
    EmbeddingModel.objects.update(canary=other.tobytes())


async def test_a_model_exchanged_under_its_name_gets_a_fingerprint_of_its_own(
    target: Target,
) -> None:
    before = await identify(target)
    await embed_texts(target, ["a text"], lane=Lane.BATCH)
    await in_db(replace_model)

    assert (await identify(target)).fingerprint == before.fingerprint, "asked a moment ago"
    now = await identify(target, recheck=True)
    assert now.fingerprint != before.fingerprint
    await embed_texts(target, ["a text"], lane=Lane.BATCH)
    assert await Embedding.objects.acount() == 2, "two spaces are never mixed"
    assert (await identify(target, recheck=True)).fingerprint == now.fingerprint
    assert await EmbeddingModel.objects.acount() == 2


async def test_a_model_is_the_same_whatever_its_server_tells_of_it(target: Target) -> None:
    """A router tells the size of a model only while it is loaded."""
    before = await identify(target)
    server = before.target.server
    server.stored_facts["models"][0]["weights"] = []
    later = await identify(Target(server, before.target.model))
    assert later.fingerprint == before.fingerprint


async def test_a_model_from_before_canaries_keeps_its_fingerprint(target: Target) -> None:
    before = await identify(target)
    await EmbeddingModel.objects.aupdate(canary=None)
    assert (await identify(target, recheck=True)).fingerprint == before.fingerprint
    assert not await EmbeddingModel.objects.filter(canary=None).aexists()


async def test_two_servers_of_one_model_keep_the_fingerprints_they_had(target: Target) -> None:
    """From before canaries: where a server tells no weights, a fingerprint is by its address."""
    here = await identify(target)
    await EmbeddingModel.objects.acreate(
        fingerprint="of another address", name=here.target.model, dimensions=1
    )
    known = await EmbeddingModel.objects.aget(fingerprint=here.fingerprint)
    await EmbeddingModel.objects.filter(fingerprint="of another address").aupdate(
        dimensions=known.dimensions
    )
    await EmbeddingModel.objects.aupdate(canary=None)
    found = await canary.fingerprint(here.target, "of another address", lane=Lane.BATCH)
    assert found == "of another address"
    assert (await identify(target, recheck=True)).fingerprint == here.fingerprint


@pytest.fixture
async def single_slot(db: None) -> AsyncIterator[Target]:
    """The embedding model of `make run`, started as there."""
    model = cached_embedding_model()
    with LlamaProcess(model, parallel=1, context_per_slot=512, embeddings=True) as llama:
        await in_db(create_server, llama, "MiniLM", Use.EMBEDDINGS)
        yield await in_db(default_target, Use.EMBEDDINGS)
        await close_clients()
        await close_async_redis()


async def test_vector_does_not_depend_on_other_texts_of_the_batch(single_slot: Target) -> None:
    texts = [f"Where is card number {number}, " + "please, " * (number % 7) for number in range(40)]
    together = await embed_texts(single_slot, texts, lane=Lane.BATCH)
    await Embedding.objects.all().adelete()
    for place in (0, 6, 39):
        alone = await embed_texts(single_slot, [texts[place]], lane=Lane.BATCH)
        assert np.array_equal(alone[0], together[place])
    assert await canary.batch_difference(single_slot, lane=Lane.BATCH) == 0.0
