"""The cache in front of a real embedding server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.db import connection

from apps.embeddings import background_saves, cache, canary, saver, sender
from apps.embeddings.cache import embed, embed_texts, identify
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.llm import errors
from apps.llm.client import Client, close_clients
from apps.llm.permits import Lane, permits_in_flight
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, Use
from apps.servers.services import Target, default_target
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = [f"text number {number} " + "x" * (number % 50) for number in range(100)]


class Sent:
    """What really went to the server."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.most_in_flight = 0
        self.fail_after: int | None = None
        self.failures: list[errors.LLMError] = []

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]


@pytest.fixture
async def target(embedding_server: Server) -> AsyncIterator[Target]:
    yield await in_db(default_target, Use.EMBEDDINGS)
    await close_clients()
    await close_async_redis()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    sent = Sent()
    real = Client.embed
    active = 0

    async def embed(self: Client, model: str, texts: Sequence[str]) -> sender.Vectors:
        nonlocal active
        if set(texts) <= {*canary.TEXTS, *canary.NEIGHBOURS}:
            return await real(self, model, texts)
        if sent.fail_after is not None and len(sent.calls) >= sent.fail_after:
            raise errors.BadRequest("told to fail")
        if sent.failures:
            raise sent.failures.pop()
        sent.calls.append(list(texts))
        active += 1
        sent.most_in_flight = max(sent.most_in_flight, active)
        try:
            return await real(self, model, texts)
        finally:
            active -= 1

    monkeypatch.setattr(Client, "embed", embed)
    return sent


async def batch(target: Target, texts: Sequence[str]) -> sender.Vectors:
    return await embed_texts(target, texts, lane=Lane.BATCH)


async def test_embed_returns_normalised_vectors_in_bounded_requests(
    target: Target, sent: Sent
) -> None:
    vectors = await batch(target, TEXTS)
    assert vectors.shape[0] == 100
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert max(map(len, sent.calls)) <= sender.BATCH_TEXTS
    # In order, although they were sent by length.
    alone = await target.client.embed(target.model, [TEXTS[70]])
    assert float(vectors[70] @ alone[0]) > 0.999


async def test_nothing_is_embedded_twice(target: Target, sent: Sent) -> None:
    first = await batch(target, TEXTS)
    sent.calls.clear()
    again = await batch(target, TEXTS[::-1])
    assert sent.calls == []
    assert np.array_equal(first, again[::-1])
    await batch(target, [*TEXTS, "a new one"])
    assert sent.texts == ["a new one"]


async def test_new_vectors_may_be_saved_when_the_caller_has_them(
    target: Target, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = await identify(target)
    released = asyncio.Event()
    real = saver.in_db

    async def in_db_when_released(function: Callable[..., Any], *args: Any) -> Any:
        await released.wait()
        return await real(function, *args)

    monkeypatch.setattr(saver, "in_db", in_db_when_released)
    first = await embed(embedder, ["a person waits"], lane=Lane.INTERACTIVE, save_later=True)
    released.set()  # not before it has returned
    await background_saves.wait_until_saved()
    sent.calls.clear()
    again = await embed(embedder, ["a person waits"], lane=Lane.INTERACTIVE)
    assert sent.calls == []
    assert np.array_equal(first, again)


async def test_a_text_that_comes_twice_in_a_call_is_sent_once(target: Target, sent: Sent) -> None:
    vectors = await batch(target, ["same", "other", "same"])
    assert sorted(sent.texts) == ["other", "same"]
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])


async def test_as_wide_as_the_server_and_never_wider(target: Target, sent: Sent) -> None:
    await batch(target, [f"{text} once more" for text in TEXTS])
    assert sent.most_in_flight == 2
    assert sum((await permits_in_flight(target.server.pk)).values()) == 0


async def test_an_interrupted_run_continues_where_it_was(target: Target, sent: Sent) -> None:
    sent.fail_after = 2
    with pytest.raises(errors.BadRequest, match="told to fail"):
        await batch(target, TEXTS)
    kept = await Embedding.objects.acount()
    assert kept > 0
    sent.fail_after = None
    sent.calls.clear()
    await batch(target, TEXTS)
    assert len(sent.texts) == len(TEXTS) - kept


async def test_a_server_that_comes_back_is_asked_again(
    target: Target, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sender.RETRY_SECONDS, Lane.BATCH, (0, 0))
    sent.failures = [errors.Loading("loading"), errors.Unreachable("gone")]
    assert (await batch(target, ["one"])).shape[0] == 1
    sent.failures = [errors.Loading("loading")] * 3
    with pytest.raises(errors.Loading):
        await batch(target, ["two"])


async def test_an_answer_that_never_comes_is_given_up(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: Client, model: str, texts: Sequence[str]) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Client, "embed", never)
    monkeypatch.setattr(sender, "ANSWER_SECONDS", 0.05)
    monkeypatch.setitem(sender.RETRY_SECONDS, Lane.BATCH, ())
    with pytest.raises(errors.Stalled):
        await batch(target, ["one"])
    assert sum((await permits_in_flight(target.server.pk)).values()) == 0


async def test_a_text_that_is_too_long_is_named_and_the_others_are_kept(
    target: Target, sent: Sent
) -> None:
    texts = [*TEXTS[:40], "y" * 5000, *TEXTS[40:], "z" * 6000, "y" * 5000]
    with pytest.raises(TextsTooLarge, match="3 texts are too long") as caught:
        await batch(target, texts)
    assert sorted(caught.value.problems) == [40, 101, 102]
    assert await Embedding.objects.acount() == len(TEXTS)
    sent.calls.clear()
    await batch(target, TEXTS)
    assert sent.calls == []


async def test_progress_counts_what_is_sent(target: Target) -> None:
    await batch(target, TEXTS[:10])
    seen: list[tuple[int, int]] = []

    async def progress(done: int, total: int) -> None:
        seen.append((done, total))

    await embed_texts(target, TEXTS, lane=Lane.BATCH, progress=progress)
    assert seen[0] == (0, 90)
    assert seen[-1] == (90, 90)


async def test_progress_can_end_it(
    target: Target, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Enough(Exception):
        pass

    async def progress(done: int, total: int) -> None:
        if done:
            raise Enough

    # Sending waits for a database that does not keep up: one group is being saved and each of the
    # two requests in flight may bring one more.
    monkeypatch.setattr(saver, "SAVE_TEXTS", 16)
    monkeypatch.setattr(sender, "BATCH_TEXTS", 16)
    with pytest.raises(Enough):
        await embed_texts(target, TEXTS, lane=Lane.BATCH, progress=progress)
    assert 0 < await Embedding.objects.acount() <= len(sent.texts) <= 48


async def test_one_permit_serves_many_requests_until_a_person_needs_the_slot(
    target: Target, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await identify(target)
    monkeypatch.setattr(sender, "HOLD_SECONDS", 60)
    monkeypatch.setattr(sender, "BATCH_TEXTS", 4)
    permits = 0
    real = sender.hold_slot

    @asynccontextmanager
    async def counted(*args: Any, **kwargs: Any) -> AsyncIterator[object]:
        nonlocal permits
        permits += 1
        async with real(*args, **kwargs) as held:
            yield held

    monkeypatch.setattr(sender, "hold_slot", counted)

    async def ask(done: int, total: int) -> None:
        if done and not before:
            before.append(permits)
            async with (
                asyncio.timeout(150),
                real(target.server, lane=Lane.INTERACTIVE),
                real(target.server, lane=Lane.INTERACTIVE),
            ):
                pass

    before: list[int] = []
    monkeypatch.setattr(saver, "SAVE_SECONDS", 0.01)
    vectors = await embed_texts(target, TEXTS, lane=Lane.BATCH, progress=ask)
    assert len(sent.calls) >= 25
    assert before == [2]  # one for each slot
    assert permits <= 8  # and some more after the questions
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert await Embedding.objects.acount() == len(TEXTS)


async def test_a_model_that_changed_its_dimensions_is_refused(target: Target) -> None:
    embedder = await identify(target)
    await EmbeddingModel.objects.filter(fingerprint=embedder.fingerprint).aupdate(dimensions=3)
    with pytest.raises(errors.ServerFailed, match="model behind this name has changed"):
        await batch(target, ["one"])


async def test_a_server_that_is_gone_says_so(target: Target, llama: LlamaProcess) -> None:
    server = target.server
    server.base_url = "http://127.0.0.1:9/v1"
    with pytest.raises(errors.Unreachable):
        await batch(replace(target, server=server), ["one"])


@pytest.mark.parametrize("vectors", [[[0.0, 0.0]], [[float("nan"), 1.0]]])
def test_what_is_no_vector_is_refused(vectors: list[list[float]]) -> None:
    with pytest.raises(errors.ServerFailed):
        sender.normalise(np.asarray(vectors, dtype=np.float32))


def test_vectors_are_brought_to_unit_length() -> None:
    unit, were_unit = sender.normalise(np.asarray([[3.0, 4.0]], dtype=np.float32))
    assert np.allclose(unit, [[0.6, 0.8]])
    assert not were_unit
    assert sender.normalise(unit)[1]


async def test_two_runs_at_once_do_not_clash(target: Target) -> None:
    one, two = await asyncio.gather(batch(target, TEXTS[:60]), batch(target, TEXTS[30:90]))
    assert np.allclose(one[30:], two[:30], atol=1e-5)
    assert await Embedding.objects.acount() == 90


async def test_looking_up_thousands_takes_few_queries(target: Target, sent: Sent) -> None:
    embedder = await identify(target)
    texts = [f"text {number}" for number in range(13_000)]
    vectors = np.tile(np.float32([1.0] + [0.0] * 383), (13_000, 1))

    def fill() -> None:
        model, _ = EmbeddingModel.objects.update_or_create(
            fingerprint=embedder.fingerprint, defaults={"name": "m", "dimensions": 384}
        )
        Embedding.objects.bulk_create(
            [
                Embedding(model=model, text_hash=cache.text_hash(text), vector=vector.tobytes())
                for text, vector in zip(texts, vectors, strict=True)
            ]
        )

    await in_db(fill)
    queries: list[str] = []

    def noted(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        queries.append(sql)
        return execute(sql, *rest)

    await in_db(lambda: connection.execute_wrappers.append(noted))
    try:
        assert np.array_equal(await batch(target, texts), vectors)
    finally:
        await in_db(lambda: connection.execute_wrappers.remove(noted))
    assert 0 < len(queries) < 13_000 / 100
    assert sent.calls == []
