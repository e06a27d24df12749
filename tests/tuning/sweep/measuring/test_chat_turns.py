"""The chat of four turns: what is asked, with the cache and without."""

import pytest

from apps.tuning.sweep.measuring import chat_turns
from apps.tuning.sweep.measuring.chat_turns import chat_tokens, measure_chat
from tests.tuning.sweep.measuring.fake_slots import FakeAnswers, FakeSlots

TURNS = 4


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> FakeAnswers:
    found = FakeAnswers()
    monkeypatch.setattr(chat_turns, "ask", found)
    monkeypatch.setattr(chat_turns, "ROUNDS", 2)
    return found


async def test_each_turn_holds_all_earlier_answers(answers: FakeAnswers) -> None:
    await measure_chat(FakeSlots(), 500, 16, 2000)  # type: ignore[arg-type]
    roles = [[message["role"] for message in request.messages] for request in answers.requests]
    assert roles[:TURNS] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["system", "user", "assistant", "user", "assistant", "user"],
        ["system", *["user", "assistant"] * 3, "user"],
    ]
    last = answers.requests[TURNS - 1].messages
    assert [one["content"] for one in last if one["role"] == "assistant"] == [
        "answer 1",
        "answer 2",
        "answer 3",
    ]


async def test_only_chats_with_the_cache_keep_their_beginning(answers: FakeAnswers) -> None:
    await measure_chat(FakeSlots(), 500, 16, 2000)  # type: ignore[arg-type]
    chats = [answers.prompts[at : at + TURNS] for at in range(0, 4 * TURNS, TURNS)]
    assert [len(set(chat)) for chat in chats] == [TURNS, 1, TURNS, 1]
    assert len(set(answers.prompts)) == 2 * (TURNS + 1), "a second chat finds nothing in the cache"


async def test_all_turns_are_asked_in_one_slot_and_counted(answers: FakeAnswers) -> None:
    slots = FakeSlots()
    found = await measure_chat(slots, 500, 16, 2000)  # type: ignore[arg-type]
    assert (slots.widths, slots.tokens) == ([1], [2000])
    assert slots.permits[0].usage is not None
    assert found.prompt_tokens == 100
    assert len(found.cached) == len(found.uncached) == TURNS
    assert found.cached[0].first_token == 0.5
    assert found.cached[0].whole == pytest.approx(2.0)
    assert found.speed_up == 1


def test_last_request_has_room_for_all_turns() -> None:
    assert chat_tokens(1000, 30, 100) == 1000 + 64 + 4 * 130
