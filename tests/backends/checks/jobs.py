"""Jobs: every row, valid JSON, as wide as the slots and no wider."""

import pytest

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench

ROWS = 100


async def a_hundred_rows(backend: Backend, workbench: Workbench) -> None:
    if not backend.chat:
        pytest.skip("no chat model")
    await workbench.add(backend, url=backend.counted_url)
    counts = backend.relay.forget() if backend.relay else None
    job = await workbench.job(backend.chat, ROWS)
    async with workbench.pumping():
        done = await workbench.until_done(job)
    assert done["status"] == "done", done["reason"]
    assert done["counts"]["failed"] == 0, done["reasons"]
    rows = await workbench.rows(job)
    assert [row["index"] for row in rows] == list(range(ROWS))
    accepted = [row for row in rows if row["status"] == "accepted"]
    # The others were cut off by the length of their answer: these models write nonsense.
    assert len(accepted) > ROWS / 2, done["reasons"]
    for row in accepted:
        assert row["output"]["label"] in {"positive", "negative"}
        assert len(row["output"]["text"]) <= 40
    if counts is not None:
        assert counts.most[backend.chat] == backend.slots
