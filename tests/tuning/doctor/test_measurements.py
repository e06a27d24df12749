"""What is measured of healthy and of faulty servers, and how it is stored."""

import pytest

from apps.tuning.doctor.amount import Unit
from apps.tuning.doctor.answers import Answer, Answers, LongText
from apps.tuning.doctor.examination import Examination, from_json, to_json
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.measurements import Measurement, measurements_of
from apps.tuning.doctor.prompt_answers import PromptRead
from apps.tuning.doctor.reading import Reading
from tests.tuning.doctor.readings import CHAT, EMBEDDINGS, chat_answers, embedding_answers


def texts(reading: Reading, answers: Answers) -> dict[str, str]:
    return {one.name: one.text for one in measurements_of(reading, answers)}


def test_a_healthy_chat_server_has_its_figures() -> None:
    answers = chat_answers()
    answers.first = PromptRead(1000, 0, 0.5)
    assert texts(CHAT, answers) == {
        "Slots": "4",
        "Context per slot": "4,096 tokens",
        "First token of a new prompt": "0.50 s",
        "First token of a known prompt": "0.02 s",
        "Known prompt, from the cache": "95%",
        "Known prompt, processed again": "50 tokens",
        "Second message, processed again": "30 tokens",
        "Thought, with thinking off": "0 tokens",
        "Delay of a streamed token": "0.00 s",
        "Generation": "40.0 tokens/s",
        "Written after its reader left": "0 tokens",
    }


def test_a_server_of_embeddings_has_its_figures() -> None:
    found = texts(EMBEDDINGS, embedding_answers())
    assert found["Length of a vector"] == "1"
    assert found["Longest text embedded"] == "2,040 tokens"
    refused = texts(EMBEDDINGS, Answers(long_text=LongText(2040, 512)))
    assert refused["Longest text embedded"] == "512 tokens"


def test_a_thought_is_measured_in_tokens() -> None:
    answers = Answers(thinking_off=Answer("", "Hm", "length", 32))
    assert texts(CHAT, answers)["Thought, with thinking off"] == "32 tokens"


def test_what_is_not_known_is_not_measured() -> None:
    assert measurements_of(Reading(model="m"), Answers()) == []


@pytest.mark.parametrize("is_examined", [True, False])
def test_an_examination_is_stored_whole(is_examined: bool) -> None:
    finding = Finding(
        code="small-context",
        severity=Severity.FAULT,
        what="What.",
        evidence="Evidence.",
        advice="Advice.",
        flags=("-c 1", "-np 1"),
    )
    one = Examination(
        "GPU",
        "m",
        [finding],
        ["A note."],
        is_examined,
        [Measurement(name="Slots", value=4, unit=Unit.NUMBER)],
        build="b1",
        command="llama-server -np 4",
    )
    assert from_json(to_json([one])) == [one]
