"""Rows of a file: each comes back, with a label or with the reason for none."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from apps.classifiers.evaluation.thresholds.decision import Refusal
from apps.classifiers.prediction import file_rows
from apps.classifiers.prediction.predict import Prediction
from apps.classifiers.prediction.predictor import RankedLabel
from apps.embeddings.errors import TextsTooLarge
from apps.files import RejectedRow
from apps.llm.errors import LLMError

ANSWER = Prediction(
    [RankedLabel("card", 0.91237), RankedLabel("rate", 0.05)], 3.0, Refusal.UNSURE, "Cut."
)


def test_row_texts_gives_number_text_and_problem_of_each_row() -> None:
    chunk: list[tuple[int, dict[str, Any] | RejectedRow]] = [
        (1, {"text": "hello"}),
        (2, {"text": 12}),
        (3, {"text": None}),
        (4, {}),
        (5, {"text": "a\0b"}),
        (6, RejectedRow(6, "", "no closing quote")),
    ]
    assert list(file_rows.row_texts(chunk, "text")) == [
        (1, "hello", ""),
        (2, "12", ""),
        (3, "", "The text is empty."),
        (4, "", "The text is empty."),
        (5, "a\0b", "The text contains a NUL character."),
        (6, "", "no closing quote"),
    ]


def test_own_cells_are_plain_values() -> None:
    names = {"id": "id", "tags": "tags", "gone": "gone", "label": "label (file)"}
    cells = {"id": 7, "tags": ["a"], "label": "mine"}
    assert file_rows.own_cells(cells, names) == {
        "id": 7,
        "tags": "['a']",
        "gone": "",
        "label (file)": "mine",
    }


def test_own_cells_of_a_rejected_row_are_empty() -> None:
    assert file_rows.own_cells(RejectedRow(1, "", "damaged"), {"id": "id"}) == {"id": ""}


def test_without_empty_keeps_the_text() -> None:
    row = {"row": 1, "text": "", "label": "", "confidence": 0.0}
    assert file_rows.without_empty(row) == {"row": 1, "text": "", "confidence": 0.0}


def classify_with(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, str, str]], *, too_long: int = 0
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """The rows that come back, and the texts of each call; texts of more characters are refused."""
    calls: list[list[str]] = []

    async def classify(ready: object, texts: Sequence[str], **options: Any) -> list[Prediction]:
        calls.append(list(texts))
        bad = {
            place: LLMError("Too long: 9 tokens.")
            for place, text in enumerate(texts)
            if len(text) > too_long > 0
        }
        if bad:
            raise TextsTooLarge(bad)
        return [ANSWER] * len(texts)

    monkeypatch.setattr(file_rows, "classify", classify)
    ready: Any = None
    return asyncio.run(file_rows.classify_rows(ready, iter(rows))), calls


def test_classify_rows_fills_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    [row], calls = classify_with(monkeypatch, [(4, "hello", "")])
    assert calls == [["hello"]]
    assert (row["row"], row["text"], row["label"], row["confidence"]) == (
        4,
        "hello",
        "card",
        0.9124,
    )
    assert (row["label_2"], row["confidence_2"], row["label_3"]) == ("rate", 0.05, "")
    assert (row["gate"], row["note"]) == ("unsure", "Cut.")


def test_classify_rows_sends_nothing_without_a_good_text(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, calls = classify_with(monkeypatch, [(1, "", "The text is empty.")])
    assert calls == []
    assert (rows[0]["label"], rows[0]["note"]) == ("", "The text is empty.")


def test_classify_rows_sends_the_others_again_without_those_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = [(1, "fine", ""), (2, "far too long", ""), (3, "", "damaged"), (4, "good", "")]
    rows, calls = classify_with(monkeypatch, given, too_long=4)
    assert calls == [["fine", "far too long", "good"], ["fine", "good"]]
    assert [row["label"] for row in rows] == ["card", "", "", "card"]
    assert "9" in rows[1]["note"]
    assert rows[2]["note"] == "damaged"


def test_classify_rows_may_end_with_no_text_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, calls = classify_with(monkeypatch, [(1, "far too long", "")], too_long=4)
    assert calls == [["far too long"]]
    assert rows[0]["label"] == ""
