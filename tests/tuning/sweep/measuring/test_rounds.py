"""One load in rounds: what is asked how often."""

import pytest

from apps.tuning.sweep.measuring import rounds
from apps.tuning.sweep.measuring.rounds import measure_load
from apps.tuning.sweep.plan import Load
from apps.tuning.sweep.prompts import SCHEMA
from tests.tuning.sweep.measuring.fake_slots import FakeAnswers, FakeSlots


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> FakeAnswers:
    found = FakeAnswers()
    monkeypatch.setattr(rounds, "ask", found)
    monkeypatch.setattr(rounds, "MOST_ROUNDS", 2)
    return found


async def test_uncached_load_is_asked_in_rounds_of_different_prompts(answers: FakeAnswers) -> None:
    slots = FakeSlots()
    point = await measure_load(slots, Load(3, 200), 4.0, 16)  # type: ignore[arg-type]
    assert slots.widths == [3, 3]
    assert slots.tokens == [200 + 64 + 16] * 2
    assert len(set(answers.prompts)) == 6
    assert {round(len(prompt), -2) for prompt in answers.prompts} == {800}
    assert {request.max_tokens for request in answers.requests} == {16}
    assert (point.rounds, point.load) == (2, Load(3, 200))
    assert all(permit.usage is not None for permit in slots.permits)


async def test_cached_load_fills_the_caches_first(answers: FakeAnswers) -> None:
    slots = FakeSlots()
    point = await measure_load(slots, Load(2, 200, is_cached=True), 4.0, 16)  # type: ignore[arg-type]
    assert slots.widths == [2, 2, 2]
    assert [request.max_tokens for request in answers.requests] == [1, 1, 16, 16, 16, 16]
    assert len({prompt[:700] for prompt in answers.prompts}) == 1
    assert len(set(answers.prompts)) == 6
    assert point.rounds == 2


async def test_json_load_has_a_schema(answers: FakeAnswers) -> None:
    await measure_load(FakeSlots(), Load(1, 50, is_json=True), 4.0, 8)  # type: ignore[arg-type]
    assert {id(request.response_format) for request in answers.requests} == {id(SCHEMA)}
    assert all("ignore_eos" not in request.params for request in answers.requests)


async def test_slow_load_is_asked_once(
    answers: FakeAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "ENOUGH_SECONDS", 0.0)
    slots = FakeSlots()
    await measure_load(slots, Load(2, 50), 4.0, 8)  # type: ignore[arg-type]
    assert slots.widths == [2]
