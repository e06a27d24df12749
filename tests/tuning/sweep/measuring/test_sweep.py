"""One sweep as a whole: its order, its pauses, and what it does when something fails."""

from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisAway

from apps.llm.errors import PoolExhausted, PromptTooLong, ServerFailed, Unreachable
from apps.servers.services import Target
from apps.tuning.errors import SweepError
from apps.tuning.sweep import services
from apps.tuning.sweep.best_width import Rate
from apps.tuning.sweep.figures import Point
from apps.tuning.sweep.measuring import sweep as module
from apps.tuning.sweep.measuring.probe import JobProbe
from apps.tuning.sweep.measuring.sweep import PAUSED, Progress, Sweep
from apps.tuning.sweep.plan import Load
from apps.tuning.sweep.results import ChatTurns, Turn
from tests.tuning.sweep.measuring.fake_slots import FakeAnswers, FakeSlots, server

CHAT = ChatTurns(100, [Turn(0.5, 1.0)], [Turn(0.1, 0.5)])
UNCACHED_SHORT = [Load(width, 256) for width in (1, 2, 4)]


class Measured:
    """Takes the place of what measures, and keeps what was measured in which order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order: list[Any] = []
        self.errors: dict[Load, Exception] = {}
        self.chat_lengths: list[tuple[int, int]] = []

        async def load(slots: Any, load: Load, characters: float, answer_tokens: int) -> Point:
            self.order.append(load)
            if load in self.errors:
                raise self.errors[load]
            return Point(load, 1, None, 100.0 * load.width, 0.1, 0.2, None)

        async def chat(slots: Any, characters: int, answer_tokens: int, tokens: int) -> ChatTurns:
            self.order.append("chat")
            self.chat_lengths.append((characters, tokens))
            return CHAT

        async def probe(itself: JobProbe, width: int, tokens: int) -> Rate:
            self.order.append(width)
            return Rate(100.0 * min(width, 3))

        monkeypatch.setattr(module, "ask", FakeAnswers(prompt_tokens=200))
        monkeypatch.setattr(module, "measure_load", load)
        monkeypatch.setattr(module, "measure_chat", chat)
        monkeypatch.setattr(JobProbe, "measure", probe)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    return Measured(monkeypatch)


class Follower:
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, progress: Progress) -> None:
        self.seen.append(progress.doing)


def sweep_of(slots: FakeSlots, follower: Follower | None = None) -> Sweep:
    sweep = Sweep(slots.target, follower or Follower(), None)
    sweep.slots = slots  # type: ignore[assignment]
    return sweep


async def test_width_comes_first_then_sequences_then_the_chat(measured: Measured) -> None:
    sweep = sweep_of(FakeSlots())
    await sweep.run()
    results = sweep.results
    assert measured.order[:2] == [4, 2]
    assert measured.order[2:6] == [*UNCACHED_SHORT, "chat"]
    assert len(measured.order) == 2 + 7 * 3 + 1
    assert (sweep.done, results.planned) == (23, 23)
    assert (results.best_width, results.probed) == (4, {2: 200, 4: 300})
    assert results.chat == CHAT
    assert (results.build, results.slots, results.context) == ("b1", 4, 8192)
    assert results.notes == []


async def test_sample_sets_the_length_of_answers_and_prompts(measured: Measured) -> None:
    """10 tokens/s: the shortest answers. 600 characters are 200 tokens."""
    sweep = sweep_of(FakeSlots())
    await sweep.run()
    assert sweep.results.answer_tokens == 16
    assert measured.chat_lengths[0][0] == 1024 * 3


async def test_interrupted_measurement_is_repeated(measured: Measured) -> None:
    follower = Follower()
    sweep = sweep_of(FakeSlots(in_use=1), follower)
    await sweep.run()
    assert follower.seen[:3] == [PAUSED, "Speed of one sequence", "Speed of one sequence"]
    assert len(sweep.results.points) == 21


@pytest.mark.parametrize("error", [PromptTooLong(9, 8), PoolExhausted("The cache is full.")])
async def test_load_that_does_not_fit_is_a_note(measured: Measured, error: Exception) -> None:
    measured.errors[UNCACHED_SHORT[2]] = error
    sweep = sweep_of(FakeSlots())
    await sweep.run()
    assert len(sweep.results.points) == 20
    assert sweep.results.notes == [f"{UNCACHED_SHORT[2].description}: {error}"]
    assert sweep.done == 23


async def test_slot_without_room_is_an_error(measured: Measured) -> None:
    facts = {"slots": 4, "context": 100, "models": [{"id": "m"}]}
    with pytest.raises(SweepError, match="too little context to measure"):
        await sweep_of(FakeSlots(Target(server(stored_facts=facts), "m"))).run()


async def test_small_slot_has_no_chat(measured: Measured) -> None:
    facts = {"slots": 2, "context": 256, "models": [{"id": "m"}]}
    sweep = sweep_of(FakeSlots(Target(server(stored_facts=facts), "m")))
    await sweep.run()
    assert sweep.results.chat is None
    assert sweep.results.notes == ["A slot has too little context for a chat of 4 turns."]


async def test_shared_cache_limits_the_search(measured: Measured) -> None:
    facts = {"slots": 4, "context": 700, "unified": True, "models": [{"id": "m"}]}
    sweep = sweep_of(FakeSlots(Target(server(stored_facts=facts, kv_unified=True), "m")))
    await sweep.run()
    assert max(width for width in measured.order if isinstance(width, int)) == 4
    widest = {load.prompt_tokens: load.width for load in measured.order if isinstance(load, Load)}
    assert max(widest) * 1 < 700


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target whose sweep has slots of its own."""
    slots = FakeSlots()
    monkeypatch.setattr(module, "IdleSlots", lambda target, owner: slots)
    return slots.target


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ServerFailed("The server broke."), "The server broke."),
        (Unreachable("Nobody answers."), "Nobody answers."),
        (RedisAway("gone"), "Redis does not answer, so no slot could be held."),
    ],
)
async def test_what_was_measured_before_an_error_is_kept(
    measured: Measured, fake: Target, error: Exception, reason: str
) -> None:
    measured.errors[UNCACHED_SHORT[1]] = error
    results = await services.sweep_server(fake, 1, Follower())
    assert [point.load for point in results.points] == UNCACHED_SHORT[:1]
    assert results.notes == [f"Stopped early. {reason}"]
    assert results.seconds > 0


async def test_error_before_anything_was_measured_is_raised(
    measured: Measured, fake: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(itself: JobProbe, width: int, tokens: int) -> Rate:
        raise Unreachable("Nobody answers.")

    monkeypatch.setattr(JobProbe, "measure", fail)
    with pytest.raises(SweepError, match="Nobody answers"):
        await services.sweep_server(fake, 1, Follower())
