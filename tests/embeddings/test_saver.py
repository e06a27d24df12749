"""How vectors are written down."""

from datetime import date

import numpy as np
import pytest

from apps.embeddings import saver as saver_module
from apps.embeddings.errors import OtherModel
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.embeddings.saver import OnSaved, VectorSaver, check_dimensions


async def saved(count: int) -> None:
    pass


@pytest.mark.django_db(transaction=True)
async def test_vectors_are_saved_in_one_order_however_they_come() -> None:
    """Two runs that save the same texts in two orders would wait for each other for ever."""
    hashes = [bytes([number]) * 32 for number in (9, 3, 7, 1)]
    saver = VectorSaver("fingerprint", "model", saved, expires=date(2100, 1, 1))
    saver.add(hashes, np.eye(4, dtype=np.float32))
    saver.finish()
    await saver.run()
    kept = [bytes(one.text_hash) async for one in Embedding.objects.order_by("pk")]
    assert kept == sorted(hashes)
    vectors = {bytes(one.text_hash): bytes(one.vector) async for one in Embedding.objects.all()}
    assert np.frombuffer(vectors[hashes[1]], "<f4").tolist() == [0, 1, 0, 0]


def create_saver(
    on_saved: OnSaved = saved, *, fingerprint: str = "fingerprint", keep: bool = True
) -> VectorSaver:
    return VectorSaver(fingerprint, "model", on_saved, expires=date(2100, 1, 1) if keep else None)


def add(saver: VectorSaver, *numbers: int, dimensions: int = 4) -> None:
    hashes = [bytes([number]) * 32 for number in numbers]
    saver.add(hashes, np.ones((len(numbers), dimensions), dtype=np.float32))


@pytest.mark.django_db(transaction=True)
async def test_run_reports_the_number_of_each_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saver_module, "SAVE_TEXTS", 2)
    counts: list[int] = []

    async def on_saved(count: int) -> None:
        counts.append(count)

    saver = create_saver(on_saved)
    add(saver, 1, 2, 3, 4, 5)
    assert not saver.has_room.is_set()
    saver.finish()
    await saver.run()
    assert counts == [2, 2, 1]
    assert saver.has_room.is_set()
    assert await Embedding.objects.acount() == 5


@pytest.mark.django_db(transaction=True)
async def test_an_error_of_the_report_ends_the_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saver_module, "SAVE_TEXTS", 2)

    async def on_saved(count: int) -> None:
        raise RuntimeError("enough")

    saver = create_saver(on_saved)
    add(saver, 1, 2, 3)
    saver.finish()
    with pytest.raises(RuntimeError, match="enough"):
        await saver.run()
    assert saver.has_room.is_set(), "the sender does not wait for ever"
    assert await Embedding.objects.acount() == 2
    await saver.flush()
    assert await Embedding.objects.acount() == 3


@pytest.mark.django_db(transaction=True)
async def test_nothing_is_saved_without_an_expiry() -> None:
    saver = create_saver(keep=False)
    add(saver, 1)
    saver.finish()
    await saver.run()
    assert not await Embedding.objects.aexists()
    assert not await EmbeddingModel.objects.aexists()


@pytest.mark.django_db(transaction=True)
async def test_vectors_of_another_length_are_refused() -> None:
    first, second = create_saver(), create_saver()
    add(first, 1)
    await first.flush()
    add(second, 2, dimensions=3)
    with pytest.raises(OtherModel, match="returns 3 dimensions instead of 4"):
        await second.flush()


@pytest.mark.django_db(transaction=True)
async def test_a_vector_that_another_run_saved_stays() -> None:
    first, second = create_saver(), create_saver()
    add(first, 1)
    add(second, 1, 2)
    await first.flush()
    await second.flush()
    assert await Embedding.objects.acount() == 2


def test_another_model_is_not_retried() -> None:
    with pytest.raises(OtherModel) as raised:
        check_dimensions(3, 4)
    assert not raised.value.transient
    check_dimensions(4, 4)
