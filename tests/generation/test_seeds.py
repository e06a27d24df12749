"""Seed rows, from whatever they were pasted as."""

from typing import Any

import pytest

from apps.generation.problems import RecipeError
from apps.generation.seeds import Table, field_names, passages, read


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"rows": [{"text": "a", "n": 1}]}, [{"text": "a", "n": "1"}]),
        ({"rows": ["a", "b"]}, [{"text": "a"}, {"text": "b"}]),
        ({"text": "a\n\n b \n"}, [{"text": "a"}, {"text": "b"}]),
        ({"text": "x;Die Art\n1;2\n", "format": "csv"}, [{"x": "1", "Die_Art": "2"}]),
        ({"text": 'a,b\n"1\n2",\n', "format": "csv"}, [{"a": "1\n2", "b": ""}]),
        ({"text": '{"a": [1]}\n\n"b"\n', "format": "jsonl"}, [{"a": "[1]"}, {"text": "b"}]),
        ({"text": "One.\n\nTwo.", "format": "document"}, [{"text": "One.\n\nTwo."}]),
    ],
)
def test_reads(given: dict[str, Any], rows: list[dict[str, str]]) -> None:
    assert read(given).rows == rows


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "come from a dataset, from rows or from a text"),
        ([], "come from a dataset"),
        ({"rows": "x"}, "a list of objects"),
        ({"rows": [{"a": 1}, 5]}, "Seed row 2 is no object"),
        ({"rows": [{"text": "x" * 20_001}]}, "longer than 20,000"),
        ({"text": " \n"}, "no seed row"),
        ({"text": '{"a": 1}\n{"a"', "format": "jsonl"}, "Line 2 is no JSON"),
        ({"text": "x", "format": "docx"}, "has a format"),
        ({"text": "a\n" * 20_001}, "20,001 seed rows; at most 20,000"),
    ],
)
def test_what_is_wrong(given: Any, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        read(given)


def test_names_that_no_template_could_use() -> None:
    assert field_names(Table([{"a": "1"}, {"b": "2"}])) == ("a", "b")
    with pytest.raises(RecipeError):
        field_names(read({"rows": [{"é": "x", "": "y"}]}))


def test_a_document_is_cut_at_paragraphs_and_sentences() -> None:
    text = "First one. " * 30 + "\n\n" + "Short.\n\nAlso short.\n\n" + "word" * 100
    found = passages(text, longest=200)
    assert all(0 < len(passage) <= 200 for passage in found)
    assert found[0].endswith("First one.")
    assert any("Short.\n\nAlso short." in passage for passage in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_picks_different_rows_without_listing_all() -> None:
    table = Table([{"n": str(n)} for n in range(5)])
    for start in range(20):
        picked = table.pick(None, 3, lambda what, of, start=start: (start * 7 + int(what)) % of)
        assert len({row["n"] for row in picked}) == 3
    assert len(table.pick([1, 2], 9, lambda what, of: 0)) == 2
