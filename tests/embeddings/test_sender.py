"""Batches of texts, retries and permits, with a client that answers as it is told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from apps.embeddings import sender
from apps.embeddings.sender import Sender, embed_few, normalise
from apps.llm import errors
from apps.llm.permits import Lane, ModelInUse, SlotTaken
from apps.servers.services import Target


class FakeServer:
    """Stands for target, server and client: one vector per text, and planned errors first."""

    def __init__(self, slots: int = 2) -> None:
        self.slots = slots
        self.model = "m"
        self.calls: list[list[str]] = []
        self.in_flight = self.most_in_flight = 0
        self.errors: list[Exception] = []
        self.permit_errors: list[Exception] = []
        self.too_large: Callable[[str], bool] = lambda text: False
        self.concurrency_limit = None

    def slots_of(self, model: str) -> int:
        return self.slots

    def measures_slots(self, model: str) -> bool:
        return False

    @property
    def server(self) -> "FakeServer":
        return self

    @property
    def client(self) -> "FakeServer":
        return self

    @property
    def target(self) -> Target:
        return cast(Target, self)

    async def embed(self, model: str, texts: Sequence[str]) -> sender.Vectors:
        self.calls.append(list(texts))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(3):  # others may begin
                await asyncio.get_running_loop().run_in_executor(None, int)
            if self.errors:
                raise self.errors.pop(0)
            if any(map(self.too_large, texts)):
                raise errors.InputTooLarge(10, 5)
            return np.array([[len(text), 1] for text in texts], dtype=np.float32)
        finally:
            self.in_flight -= 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    server = FakeServer()

    @asynccontextmanager
    async def hold_slot(*args: Any, **kwargs: Any) -> AsyncIterator[None]:
        if server.permit_errors:
            raise server.permit_errors.pop(0)
        yield

    monkeypatch.setattr(sender, "hold_slot", hold_slot)
    monkeypatch.setattr(sender, "MODEL_IN_USE_SECONDS", 0)
    monkeypatch.setitem(sender.RETRY_SECONDS, Lane.BATCH, (0, 0))
    monkeypatch.setitem(sender.RETRY_SECONDS, Lane.INTERACTIVE, (0,))
    return server


async def send(fake: FakeServer, texts: Sequence[str], lane: Lane = Lane.BATCH) -> dict[int, Any]:
    vectors, problems = await embed_few(fake.target, texts, lane=lane)
    assert set(vectors) | set(problems) == set(range(len(texts)))
    assert not set(vectors) & set(problems)
    return vectors


async def test_each_text_is_sent_once_in_batches(fake: FakeServer) -> None:
    texts = [f"{number:03}" for number in range(3 * sender.BATCH_TEXTS + 1)]
    await send(fake, texts)
    assert sorted(text for call in fake.calls for text in call) == texts
    assert sorted(map(len, fake.calls)) == [1, *[sender.BATCH_TEXTS] * 3]


@pytest.mark.parametrize("slots", [1, 3])
async def test_requests_at_once_are_as_many_as_slots(fake: FakeServer, slots: int) -> None:
    fake.slots = slots
    await send(fake, ["x"] * (6 * sender.BATCH_TEXTS))
    assert fake.most_in_flight == slots


async def test_long_texts_are_sent_first(fake: FakeServer) -> None:
    fake.slots = 1
    count = sender.BATCH_TEXTS
    await send(fake, ["a"] * count + ["long"] * count)
    assert [call[0] for call in fake.calls] == ["long", "a"]


async def test_vectors_belong_to_their_texts(fake: FakeServer) -> None:
    texts = ["x" * (1 + number % 7) for number in range(100)]
    vectors = await send(fake, texts)
    for place, text in enumerate(texts):
        assert vectors[place][0] / vectors[place][1] == pytest.approx(len(text), rel=1e-4)


@pytest.mark.parametrize("places", [{0}, {31}, {5, 6, 20}, set(range(32))])
async def test_texts_that_are_too_large_are_found_and_the_others_embedded(
    fake: FakeServer, places: set[int]
) -> None:
    fake.too_large = lambda text: text.startswith("large")
    texts = [f"{'large' if place in places else 'fits'} {place}" for place in range(32)]
    vectors, problems = await embed_few(fake.target, texts, lane=Lane.BATCH)
    assert set(problems) == places
    assert set(vectors) == set(range(32)) - places


@pytest.mark.parametrize("failures", [1, 2])
async def test_transient_errors_are_retried(fake: FakeServer, failures: int) -> None:
    fake.errors = [errors.Unreachable("gone") for _ in range(failures)]
    assert len(await send(fake, ["a"])) == 1
    assert len(fake.calls) == failures + 1


async def test_retries_end_with_the_last_error(fake: FakeServer) -> None:
    fake.errors = [errors.Unreachable("one"), errors.Unreachable("two"), errors.Loading("three")]
    with pytest.raises(errors.Loading, match="three"):
        await send(fake, ["a"])
    assert len(fake.calls) == 3


async def test_a_success_resets_the_number_of_retries(fake: FakeServer) -> None:
    fake.slots = 1
    sent = 0
    real = fake.embed

    async def embed(model: str, texts: Sequence[str]) -> sender.Vectors:
        nonlocal sent
        sent += 1
        if sent % 3:  # two failures before each success: in total more than the limit
            raise errors.Unreachable("gone")
        return await real(model, texts)

    fake.embed = embed  # type: ignore[method-assign]
    assert len(await send(fake, ["a"] * (3 * sender.BATCH_TEXTS))) == 3 * sender.BATCH_TEXTS
    assert sent == 9


async def test_permanent_errors_are_not_retried(fake: FakeServer) -> None:
    fake.errors = [errors.BadRequest("no")]
    with pytest.raises(errors.BadRequest):
        await send(fake, ["a"])
    assert len(fake.calls) == 1


async def test_a_person_does_not_wait_for_a_long_pause(fake: FakeServer) -> None:
    busy = errors.Unreachable("busy")
    busy.retry_after = sender.MAX_WAIT_SECONDS + 1  # type: ignore[attr-defined]
    fake.errors = [busy]
    with pytest.raises(errors.Unreachable, match="busy"):
        await send(fake, ["a"], Lane.INTERACTIVE)
    assert len(fake.calls) == 1


@pytest.mark.parametrize("error", [SlotTaken, ModelInUse])
async def test_a_permit_that_is_taken_is_asked_for_again(
    fake: FakeServer, error: type[Exception]
) -> None:
    fake.permit_errors = [error("taken"), error("taken")]
    assert len(await send(fake, ["a"])) == 1
    assert len(fake.calls) == 1


async def test_nothing_is_sent_while_there_is_no_room(fake: FakeServer) -> None:
    has_room = asyncio.Event()
    found: list[int] = []
    waiting = Sender(fake.target, Lane.BATCH, lambda batch, *_: found.append(len(batch)), has_room)
    running = asyncio.create_task(waiting.run([(0, "a")]))
    done, _ = await asyncio.wait({running}, timeout=0.05)
    assert (done, fake.calls) == (set(), [])
    has_room.set()
    await running
    assert found == [1]


finite = st.floats(-1000, 1000, width=32).filter(lambda number: abs(number) > 1e-3)


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 8)), elements=finite))
def test_normalise_keeps_directions_and_is_idempotent(vectors: sender.Vectors) -> None:
    unit, _ = normalise(vectors)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-3)
    assert np.allclose(unit * norms, vectors, rtol=1e-2, atol=1e-3)
    again, were_unit = normalise(unit)
    assert were_unit
    assert again is unit
