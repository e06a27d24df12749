"""What goes into a prompt, case by case."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.chat.prompt.context import AFTER_CUT, LEFT_OUT, NEARLY_FULL, RECALL, build_prompt
from apps.chat.prompt.messages import CountedPrompt, PromptCall, PromptMessage, PromptSummary
from apps.chat.prompt.prepare import ANSWER_TOKENS, limit_for
from apps.chat.tools.arguments import SMALLEST_RESULT, result_limit

SYSTEM = "You are a helpful assistant."


def dialogue(turns: int, size: int = 400) -> list[PromptMessage]:
    """That many turns of question and answer, then a question."""
    return [
        PromptMessage(
            number, "assistant" if number % 2 == 0 else "user", f"{number:04d}".ljust(size, "x")
        )
        for number in range(1, 2 * turns + 2)
    ]


def counted(
    turns: list[PromptMessage], upto: int, cut_before_message: int | None = None
) -> CountedPrompt:
    """As a model of one token per byte would count."""
    start = cut_before_message or 1
    size = sum(len(turn.content) for turn in turns if start <= turn.id <= upto)
    return CountedPrompt(size + len(SYSTEM), upto, cut_before_message)


def test_system_prompt_first_then_everything_as_it_was() -> None:
    turns = [
        PromptMessage(1, "user", " a \n"),
        PromptMessage(2, "assistant", "b\n\n"),
        PromptMessage(3, "user", "c"),
    ]
    assert build_prompt(SYSTEM, turns, context=4096).messages == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": " a \n"},
        {"role": "assistant", "content": "b\n\n"},
        {"role": "user", "content": "c"},
    ]


def test_without_a_system_prompt() -> None:
    messages = build_prompt(None, [PromptMessage(1, "user", "a")], context=None).messages
    assert messages == [{"role": "user", "content": "a"}]


def test_an_empty_answer_is_left_out_and_its_question_stays() -> None:
    turns = [
        PromptMessage(1, "user", "a"),
        PromptMessage(2, "assistant", ""),
        PromptMessage(3, "user", "b"),
    ]
    messages = build_prompt(None, turns, context=4096).messages
    assert messages == [{"role": "user", "content": "a\n\nb"}]


def test_a_prompt_begins_with_the_prompt_before_it() -> None:
    turns = dialogue(3)
    shorter = build_prompt(SYSTEM, turns[:5], context=100_000).messages
    longer = build_prompt(SYSTEM, turns, context=100_000).messages
    assert longer[: len(shorter)] == shorter


def test_estimate_starts_from_the_tokens_the_server_counted() -> None:
    turns = dialogue(3)
    exact = counted(turns, upto=6)
    prompt = build_prompt(SYSTEM, turns, context=None, counted=exact)
    assert exact.tokens < prompt.tokens < exact.tokens + 2 * 400


def test_cut_once_deeply_at_a_question_with_the_system_prompt_kept() -> None:
    turns = dialogue(10)
    prompt = build_prompt(SYSTEM, turns, context=4096, counted=counted(turns, upto=20))
    assert prompt.cut_before_message is not None
    assert prompt.cut_before_message % 2 == 1  # a question
    assert prompt.tokens <= AFTER_CUT * 4096
    assert prompt.tokens > AFTER_CUT * 4096 - 1000
    assert prompt.messages[0] == {"role": "system", "content": SYSTEM}
    assert prompt.messages[1]["role"] == "user"
    assert prompt.messages[-1]["content"] == turns[-1].content


def test_after_a_cut_the_beginning_stays_until_it_is_nearly_full_again() -> None:
    cuts, number = [], 5
    known: CountedPrompt | None = None
    while number < 40:
        turns = dialogue(number)
        prompt = build_prompt(SYSTEM, turns, context=4096, counted=known)
        cuts.append(prompt.cut_before_message)
        assert prompt.tokens <= NEARLY_FULL * 4096
        known = counted([*turns, PromptMessage(turns[-1].id + 1, "assistant", "x" * 400)],
                        turns[-1].id + 1, prompt.cut_before_message)  # fmt: skip
        number += 1
    changes = sum(before != after for before, after in pairwise(cuts))
    assert changes <= 35 / 1.5
    assert len(set(cuts)) == changes + 1  # it only ever moves forward


def test_the_newest_question_is_never_cut() -> None:
    turns = [*dialogue(1)[:2], PromptMessage(3, "user", "x" * 50_000)]
    prompt = build_prompt(SYSTEM, turns, context=4096)
    assert [message["role"] for message in prompt.messages] == ["system", "user"]
    assert prompt.cut_before_message == 3


def test_nothing_is_cut_where_the_context_is_unknown() -> None:
    assert build_prompt(SYSTEM, dialogue(100), context=None).cut_before_message is None


@pytest.mark.parametrize(
    ("wanted", "known", "limit"),
    [
        (None, {"context": 4096}, 4096),  # llama.cpp ends at the end of its slot
        (5, {"context": 4096}, 5),
        (9000, {"context": 4096}, 9000),
        (None, {"context": None}, None),
        (5, {"context": None}, 5),
        (None, {"context": 32768, "pool": 32768, "slots": 4}, 6144),
        (None, {"context": 4096, "pool": 4096, "slots": 4}, ANSWER_TOKENS),
        (None, {"context": 4096, "pool": 4096, "slots": 1}, 4096),
    ],
)
def test_no_answer_is_limited_by_an_estimate(
    wanted: int | None, known: dict[str, Any], limit: int | None
) -> None:
    assert limit_for(wanted, **known) == limit


# --- Whatever is said: properties of the cut --------------------------------------


@st.composite
def branches(draw: st.DrawFn) -> list[PromptMessage]:
    """A branch as the database may hold it: answers may be empty or missing, some are pinned."""
    turns: list[PromptMessage] = []
    size = st.integers(0, 900)
    for _ in range(draw(st.integers(0, 8))):
        turns.append(
            PromptMessage(len(turns) + 1, "user", "q" * draw(size), pinned=draw(st.booleans()))
        )
        if draw(st.booleans()):
            call = PromptCall("c", "sum", "{}")
            turns.append(PromptMessage(-len(turns) - 1, "assistant", "", calls=(call,)))
            turns.append(PromptMessage(-len(turns) - 1, "tool", "r" * draw(size), call_id="c"))
        if draw(st.booleans()):
            turns.append(PromptMessage(len(turns) + 1, "assistant", "ä" * draw(size)))
    return [*turns, PromptMessage(len(turns) + 1, "user", "?" * draw(st.integers(1, 900)))]


@settings(max_examples=150, deadline=None)
@given(
    turns=branches(),
    context=st.integers(256, 4096),
    system=st.sampled_from([None, SYSTEM]),
    counts=st.none() | st.tuples(st.integers(1, 5000), st.integers(0, 30)),
    must_cut=st.booleans(),
)
def test_the_cut_holds_for_every_branch(
    turns: list[PromptMessage],
    context: int,
    system: str | None,
    counts: tuple[int, int] | None,
    must_cut: bool,
) -> None:
    answers = [turn for turn in turns if turn.role == "assistant" and turn.id > 0]
    known = None
    if counts is not None and answers:
        known = CountedPrompt(counts[0], answers[counts[1] % len(answers)].id)
    prompt = build_prompt(system, turns, context=context, counted=known, must_cut=must_cut)
    messages = prompt.messages
    # Whoever asks is heard, and the system prompt stays where it was.
    assert messages[-1]["role"] == "user"
    assert messages[-1]["content"].endswith(turns[-1].content)
    assert [m["role"] for m in messages].count("system") == (system is not None)
    assert system is None or messages[0]["content"] == system
    # Templates refuse two of the same in a row, and a result without its call.
    roles = [message["role"] for message in messages if message["role"] != "system"]
    assert roles[0] == "user"
    assert all(pair != ("user", "user") for pair in pairwise(roles))
    for message, following in pairwise(messages):
        assert (following["role"] == "tool") == bool(message.get("tool_calls"))
    # Cut only if it must be, and then at a question after an answer, deeply or as far as it goes.
    places = [
        turn.id
        for before, turn in pairwise(turns)
        if turn.role == "user" and before.role == "assistant"
    ]
    if prompt.cut_before_message is None:
        assert prompt.tokens <= NEARLY_FULL * context or not places
    else:
        assert prompt.cut_before_message in places
        assert prompt.tokens <= AFTER_CUT * context or prompt.cut_before_message == places[-1]
    assert not prompt.left_out or prompt.cut_before_message == (places[-1] if places else None)
    # The same question is the same bytes.
    again = build_prompt(system, turns, context=context, counted=known, must_cut=must_cut)
    assert again.messages == messages


# --- What stands between the system prompt and what was kept ----------------------


def pin(turns: list[PromptMessage], *ids: int) -> list[PromptMessage]:
    return [replace(turn, pinned=turn.id in ids) for turn in turns]


@pytest.mark.parametrize("pinned", [3, 4])
def test_a_pinned_turn_is_kept_with_its_other_half(pinned: int) -> None:
    turns = pin(dialogue(12), pinned)
    prompt = build_prompt(SYSTEM, turns, context=4096)
    assert prompt.cut_before_message is not None
    assert prompt.cut_before_message > 4
    assert [m["content"][:4] for m in prompt.messages[1:4]] == [
        "0003",
        "0004",
        f"{prompt.cut_before_message:04d}",
    ]
    plain = build_prompt(SYSTEM, dialogue(12), context=4096)
    assert plain.cut_before_message is not None
    assert (
        prompt.cut_before_message > plain.cut_before_message
    )  # a pin is paid for with other turns
    assert prompt.tokens <= AFTER_CUT * 4096


def test_what_is_pinned_stands_in_its_place_while_nothing_is_cut() -> None:
    turns = pin(dialogue(3), 3)
    assert build_prompt(SYSTEM, turns, context=None) == build_prompt(
        SYSTEM, dialogue(3), context=None
    )


def test_a_summary_takes_the_place_of_what_was_cut() -> None:
    turns = dialogue(12)
    prompt = build_prompt(
        SYSTEM, turns, context=4096, summaries=[PromptSummary("We counted.", upto=6)]
    )
    assert prompt.messages[:3] == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": RECALL},
        {"role": "assistant", "content": "We counted."},
    ]
    assert prompt.messages[3]["role"] == "user"


def test_a_summary_is_not_needed_while_all_is_there() -> None:
    summary = PromptSummary("We counted.", upto=4)
    assert build_prompt(SYSTEM, dialogue(3), context=None, summaries=[summary]) == build_prompt(
        SYSTEM, dialogue(3), context=None
    )


def test_a_summary_of_another_branch_is_not_used() -> None:
    summary = PromptSummary("Something else.", upto=999)
    messages = build_prompt(SYSTEM, dialogue(12), context=4096, summaries=[summary]).messages
    assert messages[1]["content"] != RECALL


def test_the_prefix_stays_after_a_cut_with_pinned_turns_and_a_summary() -> None:
    turns = pin(dialogue(12), 3)
    summary = PromptSummary("We counted.", upto=6)
    first = build_prompt(SYSTEM, turns, context=4096, summaries=[summary])
    more = [*turns, PromptMessage(26, "assistant", "yes"), PromptMessage(27, "user", "and?")]
    count = CountedPrompt(first.tokens, 26, first.cut_before_message, front_bytes=first.front.size)
    second = build_prompt(SYSTEM, more, context=4096, counted=count, summaries=[summary])
    assert second.messages[: len(first.messages)] == first.messages


def test_the_summary_of_most_of_what_was_cut_is_used() -> None:
    summaries = [
        PromptSummary("Two turns.", upto=4),
        PromptSummary("All.", upto=25),
        PromptSummary("Six.", upto=6),
    ]
    prompt = build_prompt(SYSTEM, dialogue(12), context=4096, summaries=summaries)
    assert prompt.messages[2]["content"] == "Six."


def test_what_stands_in_front_counts_before_the_server_has_counted_it() -> None:
    turns = dialogue(12)
    cut = build_prompt(SYSTEM, turns, context=4096)
    more = [*turns, PromptMessage(26, "assistant", "yes"), PromptMessage(27, "user", "and?")]
    count = CountedPrompt(cut.tokens, 26, cut.cut_before_message)
    bare = build_prompt(SYSTEM, more, context=4096, counted=count)
    with_pin = build_prompt(SYSTEM, pin(more, 3), context=4096, counted=count)
    assert with_pin.tokens == bare.tokens + round(800 / 3)
    known = replace(count, front_bytes=with_pin.front.size)
    assert build_prompt(SYSTEM, pin(more, 3), context=4096, counted=known).tokens == bare.tokens


def test_pins_never_take_more_than_their_share_and_the_newest_stay() -> None:
    turns = dialogue(40)
    for number in range(1, 41, 2):
        turns = pin(turns, number)
    prompt = build_prompt(SYSTEM, turns, context=4096)
    pinned = [turn.id for turn in prompt.front.pinned]
    assert 0 < sum(400 for _ in pinned) / 3 <= 4096 / 4
    assert prompt.tokens <= 4096 / 2
    assert pinned == sorted(pinned)
    assert pinned[-1] == 40


def test_a_prompt_the_server_found_too_long_is_cut_whatever_was_estimated() -> None:
    turns = dialogue(6)
    assert build_prompt(SYSTEM, turns, context=4096).cut_before_message is None
    prompt = build_prompt(SYSTEM, turns, context=2000, must_cut=True)
    assert prompt.cut_before_message is not None


def test_thoughts_go_back_only_to_templates_that_keep_them() -> None:
    turns = [
        PromptMessage(1, "user", "a"),
        PromptMessage(2, "assistant", "b", reasoning="Let me see."),
        PromptMessage(3, "user", "c"),
    ]
    kept = build_prompt(None, turns, context=None, keep_reasoning=True).messages
    assert kept[1] == {"role": "assistant", "content": "b", "reasoning_content": "Let me see."}
    assert "reasoning_content" not in build_prompt(None, turns, context=None).messages[1]


# --- Rounds of calls --------------------------------------------------------------


def rounds(number: int, size: int) -> list[PromptMessage]:
    """A question, and rounds of calls with results of that many bytes."""
    turns = [PromptMessage(1, "user", "Read all of it.")]
    for n in range(1, number + 1):
        turns.append(
            PromptMessage(-2 * n, "assistant", "", calls=(PromptCall(f"c{n}", "read", "{}"),))
        )
        turns.append(PromptMessage(-2 * n - 1, "tool", str(n) * size, call_id=f"c{n}"))
    return turns


@pytest.mark.parametrize("must_cut", [False, True])
def test_the_oldest_results_make_room_within_an_answer(must_cut: bool) -> None:
    turns = rounds(8, 6000)
    prompt = build_prompt(SYSTEM, turns, context=8192, must_cut=must_cut)
    assert prompt.tokens <= AFTER_CUT * 8192
    results = [m["content"] for m in prompt.messages if m["role"] == "tool"]
    left = results.count(LEFT_OUT)
    assert 0 < left < len(results)
    assert results == [LEFT_OUT] * left + [turn.content for turn in turns[2 + 2 * left :: 2]]


def test_a_server_that_finds_it_too_long_gets_less() -> None:
    """Whatever was estimated."""
    turns = rounds(3, 300)
    assert build_prompt(None, turns, context=8192).left_out == frozenset()
    assert build_prompt(None, turns, context=8192, must_cut=True).left_out == {-3}


def test_what_made_room_stays_away_while_rounds_go_on() -> None:
    turns, known, before = rounds(1, 3000), None, None
    for number in range(2, 12):
        turns = rounds(number, 3000)
        prompt = build_prompt(SYSTEM, turns, context=8192, counted=known)
        assert prompt.tokens <= NEARLY_FULL * 8192
        if before is not None:
            assert before.left_out <= prompt.left_out
            if before.left_out == prompt.left_out:
                assert prompt.messages[: len(before.messages)] == before.messages
        size = sum(len(m["content"]) for m in prompt.messages)
        known = CountedPrompt(size // 2, turns[-2].id, left_out=prompt.left_out)
        before = prompt
    assert before is not None
    assert before.left_out


def test_results_share_what_is_left() -> None:
    used = 0
    for _ in range(8):
        room = result_limit(8192, 1, used)
        assert room >= SMALLEST_RESULT
        used += room // 3
    assert used < 8192
