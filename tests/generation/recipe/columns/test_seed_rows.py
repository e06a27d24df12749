"""Seed rows, from whatever they were pasted as."""

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.generation.recipe.columns.passages import passages
from apps.generation.recipe.columns.seed_rows import Table, field_names, read_text, table_of
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from tests.cpu_time import GROWTH, growth_problem


def seed_table(source: dict[str, Any]) -> Table:
    recipe = parse({"columns": [{"name": "row", "kind": "seed", **source}], "prompt": "Write."})
    return recipe.seeds[0].table


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
    assert seed_table(given).rows == rows


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "a dataset, rows or text"),
        ({"rows": "x"}, "a list of objects"),
        ({"rows": [{"a": 1}, 5]}, "Seed row 2 is not an object"),
        ({"rows": [{"text": "x" * 20_001}]}, "longer than 20,000"),
        ({"text": " \n"}, "No seed rows"),
        ({"text": '{"a": 1}\n{"a"', "format": "jsonl"}, "Line 2 is not valid JSON"),
        ({"text": "x", "format": "docx"}, "has a format"),
        ({"text": "a\n" * 20_001}, "20,001 seed rows; the limit is 20,000"),
    ],
)
def test_seed_rows_refuse_bad_input(given: Any, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        seed_table(given)


def test_names_that_no_template_could_use() -> None:
    assert field_names(Table([{"a": "1"}, {"b": "2"}])) == ("a", "b")
    with pytest.raises(RecipeError):
        field_names(table_of([{"é": "x", "": "y"}]))


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


DOCUMENT = """# Setup

Install it with one command:

```sh
make install

  make run
```

| option | meaning |
|--------|---------|
| -np    | slots   |

First line
second line
  - indented"""


def test_a_document_keeps_its_lines_code_and_tables() -> None:
    assert passages(DOCUMENT) == [DOCUMENT]


def test_code_that_is_cut_stays_fenced_and_a_table_keeps_its_head() -> None:
    code = "```py\n" + "print('a line of code')\n\n" * 40 + "```"
    table = "| a | b |\n|---|---|\n" + "| some | cells |\n" * 60
    for text in (code, table):
        found = passages(text, longest=300)
        assert len(found) > 2
        assert all(len(passage) <= 300 for passage in found)
        head = text.splitlines()[: 1 if text is code else 2]
        assert all(passage.splitlines()[: len(head)] == head for passage in found)
    assert all(passage.endswith("\n```") for passage in passages(code, longest=300))


@given(
    st.lists(
        st.sampled_from(
            ["word " * 9, "", "x" * 50, "A. B! 好。", "```", "| a | b |", "|-|-|", "  i"]
        ),
        max_size=40,
    ),
    st.integers(40, 200),
)
@settings(max_examples=150, deadline=None)
def test_nothing_of_a_document_is_lost_and_no_passage_too_long(
    lines: list[str], longest: int
) -> None:
    text = "\n".join(lines)
    found = passages(text, longest=longest)
    assert all(0 < len(passage) <= longest for passage in found)
    letters = Counter(sign for sign in text if sign.isalnum() and sign not in "ab")
    kept = Counter(
        sign for passage in found for sign in passage if sign.isalnum() and sign not in "ab"
    )
    assert letters == kept  # heads of tables may come more often


def test_a_document_of_one_long_line_is_cut_in_linear_time() -> None:
    short, long = ("word " * size for size in (100_000, GROWTH * 100_000))
    assert growth_problem(partial(passages, short), partial(passages, long)) == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("%PDF-1.4\n1 0 obj", "This is a PDF file, not text"),
        ("\n%PDF-1.7", "This is a PDF file, not text"),
        ("PK\x03\x04\x14", "a Word, Excel, EPUB or zip file"),
        ("a\x00b", "a binary file"),
    ],
)
@pytest.mark.parametrize("kind", ["lines", "document", "csv", "jsonl"])
def test_files_that_are_no_text_are_refused(text: str, sentence: str, kind: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        read_text(text, kind)
