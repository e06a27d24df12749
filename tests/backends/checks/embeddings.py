"""Vectors, and a classifier on them."""

import pytest

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench


async def a_classifier(backend: Backend, workbench: Workbench) -> None:
    if backend.embeddings is None:
        pytest.skip("no embedding model")
    await workbench.add(backend, url=backend.counted_url)
    counts = backend.relay.forget() if backend.relay else None
    trained = await workbench.train(backend.embeddings)
    assert trained["status"] == "ready", trained["error"]
    assert trained["metrics"]["accuracy"] > 0.9
    if counts is not None:
        assert set(counts.asked) == {backend.embeddings}
        assert counts.most[backend.embeddings] <= backend.slots
    path = f"/classifiers/{trained['id']}/predict"
    body = {"texts": ["HELLO THERE GOOD MORNING 77"]}
    found = await workbench.call("post", path, body)
    assert found["predictions"][0]["label"] == "hello"
