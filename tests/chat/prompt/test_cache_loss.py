"""What the prompt cache should have held, case by case."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from apps.chat.presets.system_prompts import changing_parts
from apps.chat.prompt.cache_loss import CachedRequest, find_loss

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FIRST = CachedRequest("qwen", 1, None, 3000, 0, 200, NOON)
NEXT = CachedRequest("qwen", 1, None, 3250, 3190, 100, NOON + timedelta(minutes=1))


def lost(**changes: object) -> str:
    found = find_loss(replace(NEXT, cached_tokens=0, **changes), FIRST)  # type: ignore[arg-type]
    return found.reason if found else ""


def test_nothing_is_lost_when_the_prefix_was_known() -> None:
    assert find_loss(NEXT, FIRST) is None


def test_nothing_was_known_before_the_first_answer() -> None:
    assert find_loss(replace(FIRST, cached_tokens=0), None) is None


@pytest.mark.parametrize(
    ("prompt", "cached"),
    [
        (200, 0),  # short: nobody notices
        (3250, 1700),  # more than half of it
    ],
)
def test_small_losses_need_no_sentence(prompt: int, cached: int) -> None:
    before = replace(FIRST, prompt_tokens=min(3000, prompt - 50), completion_tokens=40)
    assert find_loss(replace(NEXT, prompt_tokens=prompt, cached_tokens=cached), before) is None


def test_says_how_much_was_read_again() -> None:
    found = find_loss(replace(NEXT, cached_tokens=100), FIRST)
    assert found is not None
    assert found.tokens == 3000 + 200 - 100


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "llama"}, "another model answered: llama instead of qwen"),
        ({"cut_before_message": 7}, "dropped to free context"),
        ({"system_prompt": 2}, "the system prompt changed"),
        ({"tools": "f00"}, "the tools changed"),
        ({"front": (1, 7)}, "a pinned message or the summary changed"),
        ({}, "restarted, or other requests"),
    ],
)
def test_the_reason(changes: dict[str, object], reason: str) -> None:
    assert reason in lost(**changes)


def test_a_conversation_with_the_same_system_prompt_took_the_slot() -> None:
    now = replace(NEXT, cached_tokens=480)
    found = find_loss(now, FIRST, others_with_same_prompt=True, system_tokens=490)
    assert found is not None
    assert "-sps 0.5" in found.reason
    other = find_loss(now, FIRST, others_with_same_prompt=False, system_tokens=490)
    assert other is not None
    assert "-sps" not in other.reason


def test_a_model_that_sleeps_forgets() -> None:
    now = replace(NEXT, cached_tokens=0, at=NOON + timedelta(hours=1))
    found = find_loss(now, FIRST, sleeps_after=timedelta(minutes=5))
    assert found is not None
    assert "unloaded" in found.reason


def test_an_answer_that_is_written_again_shares_the_question_alone() -> None:
    again = replace(FIRST, cached_tokens=2990, at=NOON + timedelta(minutes=1))
    assert find_loss(again, FIRST, is_sibling=True) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("You are a helpful assistant.", []),
        ("Today is 2026-05-01. Be brief.", ["Today is 2026-05-01"]),
        ("Today's date is Friday", ["Today's date is Friday"]),
        ("The time: 14:05:33", ["14:05:33"]),
        ("Written on 3 May 2026.", ["3 May 2026"]),
        ("Hello {{CURRENT_TIME}}, {{ user }}", ["{{CURRENT_TIME}}", "{{ user }}"]),
        ("Answer as {USER_NAME}", ["{USER_NAME}"]),
        ('Answer with JSON such as {"a": 1} or {x}', []),
        ("Ratio 3:2 and version 1.2.3, in 1815", []),
    ],
)
def test_parts_that_change(text: str, parts: list[str]) -> None:
    assert [found.text for found in changing_parts(text)] == parts
