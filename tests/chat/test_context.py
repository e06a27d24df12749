"""What goes into a prompt, case by case."""

from itertools import pairwise

import pytest

from apps.chat.context import (
    AFTER_CUT,
    MARGIN_TOKENS,
    NEARLY_FULL,
    Counted,
    Prompt,
    Turn,
    answer_budget,
    build,
)

SYSTEM = "You are a helpful assistant."


def dialogue(turns: int, size: int = 400) -> list[Turn]:
    """That many turns of question and answer, then a question."""
    return [
        Turn(number, "assistant" if number % 2 == 0 else "user", f"{number:04d}".ljust(size, "x"))
        for number in range(1, 2 * turns + 2)
    ]


def counted(turns: list[Turn], upto: int, kept_from: int | None = None) -> Counted:
    """As a model of one token per byte would count."""
    start = kept_from or 1
    size = sum(len(turn.content) for turn in turns if start <= turn.id <= upto)
    return Counted(size + len(SYSTEM), upto, kept_from)


def test_system_prompt_first_then_everything_as_it_was() -> None:
    turns = [Turn(1, "user", " a \n"), Turn(2, "assistant", "b\n\n"), Turn(3, "user", "c")]
    assert build(SYSTEM, turns, context=4096).messages == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": " a \n"},
        {"role": "assistant", "content": "b\n\n"},
        {"role": "user", "content": "c"},
    ]


def test_without_a_system_prompt() -> None:
    messages = build(None, [Turn(1, "user", "a")], context=None).messages
    assert messages == [{"role": "user", "content": "a"}]


def test_an_empty_answer_is_left_out_and_its_question_stays() -> None:
    turns = [Turn(1, "user", "a"), Turn(2, "assistant", ""), Turn(3, "user", "b")]
    messages = build(None, turns, context=4096).messages
    assert messages == [{"role": "user", "content": "a\n\nb"}]


def test_a_prompt_begins_with_the_prompt_before_it() -> None:
    turns = dialogue(3)
    shorter = build(SYSTEM, turns[:5], context=100_000).messages
    longer = build(SYSTEM, turns, context=100_000).messages
    assert longer[: len(shorter)] == shorter


def test_the_estimate_goes_on_from_what_the_server_counted() -> None:
    turns = dialogue(3)
    exact = counted(turns, upto=6)
    prompt = build(SYSTEM, turns, context=None, counted=exact)
    assert exact.tokens < prompt.tokens < exact.tokens + 2 * 400


def test_cut_once_deeply_at_a_question_with_the_system_prompt_kept() -> None:
    turns = dialogue(10)
    prompt = build(SYSTEM, turns, context=4096, counted=counted(turns, upto=20))
    assert prompt.kept_from is not None
    assert prompt.kept_from % 2 == 1  # a question
    assert prompt.tokens <= AFTER_CUT * 4096
    assert prompt.tokens > AFTER_CUT * 4096 - 1000
    assert prompt.messages[0] == {"role": "system", "content": SYSTEM}
    assert prompt.messages[1]["role"] == "user"
    assert prompt.messages[-1]["content"] == turns[-1].content


def test_after_a_cut_the_beginning_stays_until_it_is_nearly_full_again() -> None:
    cuts, number = [], 5
    known: Counted | None = None
    while number < 40:
        turns = dialogue(number)
        prompt = build(SYSTEM, turns, context=4096, counted=known)
        cuts.append(prompt.kept_from)
        assert prompt.tokens <= NEARLY_FULL * 4096
        known = counted([*turns, Turn(turns[-1].id + 1, "assistant", "x" * 400)],
                        turns[-1].id + 1, prompt.kept_from)  # fmt: skip
        number += 1
    changes = sum(before != after for before, after in pairwise(cuts))
    assert changes <= 35 / 1.5
    assert len(set(cuts)) == changes + 1  # it only ever moves forward


def test_the_newest_question_is_never_cut() -> None:
    turns = [*dialogue(1)[:2], Turn(3, "user", "x" * 50_000)]
    prompt = build(SYSTEM, turns, context=4096)
    assert [message["role"] for message in prompt.messages] == ["system", "user"]
    assert prompt.kept_from == 3


def test_nothing_is_cut_where_the_context_is_unknown() -> None:
    assert build(SYSTEM, dialogue(100), context=None).kept_from is None


@pytest.mark.parametrize(
    ("context", "used", "wanted", "budget"),
    [
        (4096, 100, None, 2048),
        (4096, 3000, None, 4096 - 3000 - MARGIN_TOKENS),
        (4096, 100, 5, 5),
        (None, 100, None, 2048),
        (4096, 9000, None, 1),
    ],
)
def test_answers_stay_within_the_context(
    context: int | None, used: int, wanted: int | None, budget: int
) -> None:
    assert answer_budget(Prompt([], used, None), context=context, wanted=wanted) == budget
