"""Prompts and answers of a chat model that labels texts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.prediction.chat_labels import (
    EXAMPLE_LENGTHS,
    INSTRUCTIONS,
    Spec,
    read_answer,
    request_for,
    row_tokens,
    system_prompt,
)
from apps.llm.thinking import NOT_REPORTED

LABELS = ["card", "rate"]
SPEC = Spec(LABELS, system_prompt(LABELS, []))


def answer(**fields: object) -> str:
    return json.dumps(fields)


def test_read_answer_gives_label_and_confidence() -> None:
    assert read_answer(answer(label="card", confidence=80), LABELS) == ("card", 0.8, "")


@pytest.mark.parametrize(("given", "expected"), [(140, 1.0), (-5, 0.0), (0, 0.0), (99.5, 0.995)])
def test_read_answer_keeps_confidence_between_0_and_1(given: float, expected: float) -> None:
    assert read_answer(answer(label="card", confidence=given), LABELS)[1] == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("card", "not valid JSON"),
        ("[]", "none of the labels"),
        ('{"label": "loan", "confidence": 5}', "none of the labels"),
        ('{"confidence": 5}', "none of the labels"),
        ('{"label": "card"}', "no confidence"),
        ('{"label": "card", "confidence": true}', "no confidence"),
        ('{"label": "card", "confidence": "high"}', "no confidence"),
    ],
)
def test_read_answer_names_what_is_wrong(text: str, says: str) -> None:
    label, confidence, problem = read_answer(text, LABELS)
    assert (label, confidence) == ("", 0.0)
    assert says in problem


@given(st.text(max_size=60))
def test_read_answer_never_invents_a_label(text: str) -> None:
    label, confidence, problem = read_answer(text, LABELS)
    assert label in {"", *LABELS}
    assert bool(problem) != bool(label)
    assert 0 <= confidence <= 1


CONFIDENCES = st.floats() | st.sampled_from([10**400, -(10**400)]) | st.integers()


@given(st.sampled_from(LABELS), CONFIDENCES)
def test_read_answer_takes_any_number_as_confidence(label: str, confidence: float) -> None:
    found, share, problem = read_answer(answer(label=label, confidence=confidence), LABELS)
    assert (found, problem) == (label, "")
    assert 0 <= share <= 1


def test_read_answer_refuses_json_that_is_nested_too_deeply() -> None:
    assert read_answer("[" * 100_000, LABELS) == ("", 0.0, "The answer is not valid JSON.")


def test_system_prompt_lists_labels_with_their_descriptions() -> None:
    prompt = system_prompt(LABELS, [], "", {"card": "about bank cards"})
    assert prompt.startswith(INSTRUCTIONS)
    assert "- card: about bank cards\n- rate" in prompt
    assert "Examples" not in prompt


def test_system_prompt_takes_own_instructions() -> None:
    assert system_prompt(LABELS, [], " Choose well. ").startswith("Choose well.\n")
    assert system_prompt(LABELS, [], "   ").startswith(INSTRUCTIONS)


def test_system_prompt_puts_examples_on_one_line_each() -> None:
    prompt = system_prompt(LABELS, [("my\n card\tis lost", "card")])
    assert "Text: my card is lost\nLabel: card" in prompt


@given(st.lists(st.tuples(st.text(max_size=3_000), st.sampled_from(LABELS)), max_size=30))
def test_system_prompt_cuts_long_examples(examples: list[tuple[str, str]]) -> None:
    longest = EXAMPLE_LENGTHS[1] + len("Text: …")
    for line in system_prompt(LABELS, examples).splitlines():
        assert len(line) <= max(longest, len(INSTRUCTIONS))


def test_request_for_keeps_the_prefix_of_every_row() -> None:
    first, second = (request_for(SPEC, text, "model") for text in ("one", "two"))
    assert first.messages[0] == second.messages[0] == {"role": "system", "content": SPEC.system}
    assert [ask.messages[1]["content"] for ask in (first, second)] == ["Text: one", "Text: two"]
    assert first.params == {"temperature": 0.0, "seed": 0}


def test_request_for_allows_only_the_labels() -> None:
    schema = request_for(SPEC, "one", "model").response_format["json_schema"]["schema"]  # type: ignore[index]
    assert schema["properties"]["label"]["enum"] == LABELS
    assert schema["additionalProperties"] is False


def test_spec_reads_what_a_job_stores() -> None:
    stored = {"labels": LABELS, "system": "x", "longest": 7, "asked_shots": 3, "thinking": 512}
    assert Spec.read(stored) == Spec(LABELS, "x", 7, asked_shots=3, thinking=512)
    assert Spec.read(stored).to_json() == stored
    assert Spec.read({"labels": LABELS, "system": "x"}).longest == Spec(LABELS, "x").longest


def test_row_tokens_grow_with_the_longest_text() -> None:
    short, long = (row_tokens(Spec(LABELS, "x", longest), NOT_REPORTED) for longest in (10, 500))
    assert long - short == 490
    thoughtful = row_tokens(Spec(LABELS, "x", 10, thinking=512), NOT_REPORTED)
    assert thoughtful - short == 512
    assert SPEC.max_tokens > 48
