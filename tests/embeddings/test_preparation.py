"""Prefixes, truncated vectors and texts that are too long, on a real embedding server."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.embeddings import arrays
from apps.embeddings.cache import Embedder, EmbedStats, embed, identify
from apps.embeddings.errors import TextsTooLarge, TooFewDimensions
from apps.embeddings.models import Embedding
from apps.embeddings.preparation import (
    LONG_TEXTS,
    LongTexts,
    Preparation,
    embed_prepared,
    split_text,
    truncated,
)
from apps.llm.client import close_clients
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, Use
from apps.servers.services import default_target

LONG = "a long text of many words " * 300


@pytest.fixture
async def embedder(embedding_server: Server) -> AsyncIterator[Embedder]:
    yield await identify(await in_db(default_target, Use.EMBEDDINGS))
    await close_clients()
    await close_async_redis()


@pytest.mark.django_db(transaction=True)
async def test_a_prefix_is_part_of_what_is_embedded(embedder: Embedder) -> None:
    prepared = await embed_prepared(
        embedder, ["weather", "bank"], Preparation(prefix="query: "), lane=Lane.BATCH
    )
    plain = await embed(embedder, ["query: weather", "bank"], lane=Lane.BATCH)
    assert np.array_equal(prepared.vectors[0], plain[0])
    assert not np.array_equal(prepared.vectors[1], plain[1])


@pytest.mark.django_db(transaction=True)
async def test_another_truncation_embeds_nothing(embedder: Embedder) -> None:
    stats = EmbedStats()
    texts = ["one", "two", "three"]
    whole = await embed_prepared(embedder, texts, lane=Lane.BATCH, stats=stats)
    assert (stats.sent, stats.normalised) == (3, True)
    short = await embed_prepared(
        embedder, texts, Preparation(dimensions=8), lane=Lane.BATCH, stats=stats
    )
    assert stats.sent == 3
    assert short.vectors.shape == (3, 8)
    expected = whole.vectors[:, :8] / np.linalg.norm(whole.vectors[:, :8], axis=1, keepdims=True)
    assert np.allclose(short.vectors, expected, atol=1e-6)
    with pytest.raises(TooFewDimensions, match="Choose fewer"):
        truncated(whole.vectors, 100_000)


@pytest.mark.django_db(transaction=True)
async def test_a_long_text_is_refused_cut_or_averaged(embedder: Embedder) -> None:
    texts = ["short", LONG, "other"]
    with pytest.raises(TextsTooLarge) as caught:
        await embed_prepared(embedder, texts, lane=Lane.BATCH)
    assert list(caught.value.problems) == [1]

    cut = await embed_prepared(embedder, texts, Preparation(long_texts="cut"), lane=Lane.BATCH)
    assert list(cut.shortened) == [1]
    assert "Truncated to" in cut.shortened[1]
    mean = await embed_prepared(embedder, texts, Preparation(long_texts="mean"), lane=Lane.BATCH)
    assert "average of 5 parts" in mean.shortened[1]
    for prepared in (cut, mean):
        assert prepared.vectors.shape[0] == 3
        assert np.allclose(np.linalg.norm(prepared.vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(cut.vectors[[0, 2]], mean.vectors[[0, 2]])
    assert not np.array_equal(cut.vectors[1], mean.vectors[1])
    known = await Embedding.objects.acount()
    await embed_prepared(embedder, texts, Preparation(long_texts="mean"), lane=Lane.BATCH)
    assert await Embedding.objects.acount() == known


@pytest.mark.parametrize(
    ("text", "size", "pieces"),
    [
        ("one two three", 100, ["one two three"]),
        ("one two three", 8, ["one two", "three"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a  b", 1, ["a", "b"]),
    ],
)
def test_texts_are_split_at_white_space(text: str, size: int, pieces: list[str]) -> None:
    assert split_text(text, size) == pieces


def test_options_that_are_damaged_keep_their_default() -> None:
    assert Preparation.read({}) == Preparation()
    assert Preparation.read({"long_texts": "explode", "prefix": None}) == Preparation()
    kept = Preparation("query: ", 256, "mean")
    assert Preparation.read(kept.as_dict()) == kept


def test_large_arrays_live_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAPPED_FROM_BYTES", 100)
    large = arrays.empty_array((50, 4))
    assert isinstance(large, np.memmap)
    large[:] = np.arange(200, dtype=np.float32).reshape(50, 4)
    odd = np.arange(50) % 2 == 1
    assert np.array_equal(arrays.take_rows(large, odd), np.asarray(large)[odd])
    assert not isinstance(arrays.empty_array((2, 4)), np.memmap)


words = st.text(st.sampled_from("ab \n"), max_size=60)


@given(words, st.integers(1, 20))
def test_split_text_loses_only_white_space(text: str, size: int) -> None:
    pieces = split_text(text, size)
    assert all(len(piece) <= size and piece.strip() for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(st.text(max_size=20), st.integers(0, 5000), st.sampled_from(LONG_TEXTS))
def test_a_preparation_survives_its_storage(prefix: str, dimensions: int, long: LongTexts) -> None:
    preparation = Preparation(prefix, dimensions, long)
    assert Preparation.read(preparation.as_dict()) == preparation


@given(st.integers(1, 8))
def test_truncated_vectors_have_unit_length(dimensions: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    short = truncated(vectors, dimensions)
    assert short.shape == (5, dimensions)
    assert np.allclose(np.linalg.norm(short, axis=1), 1, atol=1e-5)
    assert np.all(np.sign(short) == np.sign(vectors[:, :dimensions]))


def test_zero_dimensions_keep_the_whole_vector() -> None:
    vectors = np.eye(3, dtype=np.float32)
    assert truncated(vectors, 0) is vectors
