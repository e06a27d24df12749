"""How vectors are written down."""

from datetime import date

import numpy as np
import pytest

from apps.embeddings.models import Embedding
from apps.embeddings.saver import VectorSaver


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
