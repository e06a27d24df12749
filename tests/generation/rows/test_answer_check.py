"""What becomes a row, and why not."""

from typing import Any

import pytest

from apps.generation.recipe.parse import parse
from apps.generation.rows.answer_check import (
    check_answer,
    fingerprint,
    first_error,
    free_texts,
    free_texts_of,
)
from tests.generation.recipe.columns.test_schemas import LABELLED, of


@pytest.mark.parametrize(
    ("text", "finish_reason", "code"),
    [
        ('{"text": "Good.", "label": "positive"}', "stop", ""),
        ('{"text": "Good.", "label": "positive"}', "length", "length"),
        ('{"text": "Good."', "stop", "invalid_json"),
        ('```json\n{"text": "Good.", "label": "positive"}\n```', "stop", ""),
        ('Here:\n\n```\n{"text": "```", "label": "positive"}\n```\n', "stop", ""),
        ('```python\n{"text": "Good.", "label": "positive"}\n```', "stop", "invalid_json"),
        ('```json\n{"text": "Good.", "label": "positive"}', "stop", "invalid_json"),
        ("```json\n{}\n```\n```json\n{}\n```", "stop", "invalid_json"),
        ('{"text": 1e999, "label": "positive"}', "stop", "invalid_json"),
        ('{"text": NaN, "label": "positive"}', "stop", "invalid_json"),
        ("[" * 100_000, "stop", "invalid_json"),
        ("", "stop", "invalid_json"),
        ('{"text": "Good.", "label": "fine"}', "stop", "schema"),
        ('{"text": " ", "label": "positive"}', "stop", "empty"),
        ('{"text": "x", "label": "positive"}', "tool_calls", "unfinished"),
    ],
)
def test_with_a_schema(text: str, finish_reason: str, code: str) -> None:
    judgement = check_answer(LABELLED, text, finish_reason)
    assert judgement.code == code
    assert bool(judgement.reason) == bool(code)


def test_without_a_schema_the_text_is_the_row() -> None:
    assert check_answer(None, " Hello \n", "stop").output == {"text": "Hello"}
    assert check_answer(None, " \n", "stop").code == "empty"


def test_half_a_surrogate_pair_becomes_a_replacement() -> None:
    output = check_answer(LABELLED, '{"text": "a\\ud800", "label": "positive"}', "stop").output
    assert output["text"] == "a\ufffd"


@pytest.mark.parametrize("same", ["It works.", " it  WORKS.", "It\nworks.", "Ｉt works."])
def test_texts_a_reader_would_call_the_same(same: str) -> None:
    assert fingerprint([same]) == fingerprint(["It works."])


def test_other_texts_differ() -> None:
    assert fingerprint(["It works!"]) != fingerprint(["It works."])
    assert fingerprint(["a", "b"]) != fingerprint(["ab"])


def test_labels_alone_may_come_twice() -> None:
    schema = {"type": "object", "properties": {"label": {"enum": ["a", "b"]}}}
    recipe = parse({"prompt": "x", "schema": schema})
    assert free_texts_of(recipe, {"label": "a"}) == []
    assert fingerprint([]) is None


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"text": "x", "label": "positive"}, ""),
        ({"text": "x"}, "'label' is a required property"),
        ({"text": "x", "label": "neutral"}, "“label”"),
        ({"text": 5, "label": "positive"}, "“text”"),
        ({"text": "x" * 301, "label": "positive"}, "“text”"),
        ({"text": "x", "label": "positive", "more": 1}, "more"),
        (["text"], "object"),
        ("text", "object"),
    ],
)
def test_first_error(row: Any, sentence: str) -> None:
    found = first_error(LABELLED, row)
    assert (sentence in found) if sentence else found == ""
    assert len(found) < 300


def test_free_texts_are_what_the_model_was_free_to_write() -> None:
    schema = of(
        label={"enum": ["a"]},
        title={"type": "string"},
        tags={"type": "array", "items": {"type": "string"}},
        who=of(name={"type": "string"}, age={"type": "integer"}),
    )
    row = {"label": "a", "title": "T", "tags": ["x", "y"], "who": {"name": "N", "age": 3}}
    assert free_texts(schema, row) == ["T", "x", "y", "N"]
    assert free_texts(None, {"text": "only"}) == ["only"]
