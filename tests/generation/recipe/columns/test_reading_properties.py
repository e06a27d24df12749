"""Seed rows, schemas and checks: no input raises anything but a recipe error."""

import json
from typing import Any
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.checks import KINDS
from apps.generation.recipe.columns.passages import passages
from apps.generation.recipe.columns.seed_rows import (
    FORMATS,
    MAX_CELL,
    Format,
    Table,
    field_names,
    read_text,
    table_of,
)
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows import answer_check
from tests.generation.recipe.strategies import JSON, RECIPE_LIKE

LINES = st.text(st.sampled_from('ab,;\t|"\n\r{}[]:é 0'), max_size=80) | st.text(max_size=60)
CELLS = st.none() | st.integers() | st.text(max_size=10) | st.lists(st.booleans(), max_size=2)


# --- Seed rows ----------------------------------------------------------------


@given(LINES, st.sampled_from(list(FORMATS)))
def test_pasted_rows_are_texts_under_valid_names_or_refused(text: str, form: Format) -> None:
    try:
        table = read_text(text, form)
    except RecipeError:
        return
    assert table.rows
    for row in table.rows:
        assert row
        assert all(isinstance(cell, str) and len(cell) <= MAX_CELL for cell in row.values())


@given(JSON | st.lists(st.dictionaries(st.text(max_size=6), CELLS), max_size=4))
def test_seed_rows_as_objects_are_read_or_refused(value: Any) -> None:
    try:
        table = table_of(value)
        names = field_names(table)
    except RecipeError:
        return
    assert {name for row in table.rows for name in row} == set(names)


@given(st.lists(st.text("abc xyz", min_size=1).filter(str.strip), min_size=1))
def test_lines_are_the_rows(lines: list[str]) -> None:
    table = read_text("\n".join(lines), "lines")
    assert table.texts == [line.strip() for line in lines]


@given(st.lists(st.fixed_dictionaries({"text": st.text(max_size=20)}), min_size=1))
def test_jsonl_rows_are_the_objects(rows: list[dict[str, str]]) -> None:
    text = "\n".join(json.dumps(row) for row in rows)
    assert list(read_text(text, "jsonl").rows) == rows


@given(st.text(max_size=400), st.integers(20, 200))
@settings(max_examples=60)
def test_passages_hold_every_word_in_order(text: str, longest: int) -> None:
    found = passages(text, longest)
    letters = "".join(text.split())
    assert all(passage.strip() for passage in found)
    if "`" not in text and "~" not in text and "|" not in text:  # fences and tables are repeated
        assert "".join("".join(found).split()) == letters
        assert all(len(passage) <= longest for passage in found)


@given(
    st.lists(st.sampled_from("ab"), min_size=1, max_size=20),
    st.integers(1, 25),
    st.integers(0, 2**32),
)
def test_picked_rows_are_different_and_enough(labels: list[str], count: int, seed: int) -> None:
    table = Table([{"text": str(at), "label": label} for at, label in enumerate(labels)])
    found = table.pick(None, count, lambda name, total: crc32(f"{name} {seed}".encode()) % total)
    assert len({row["text"] for row in found}) == len(found) == min(count, len(labels))
    of_a = table.matching("label", "a")
    assert [labels[at] for at in of_a] == ["a"] * labels.count("a")


# --- Schemas ------------------------------------------------------------------


FIELD_SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean"])}),
        st.fixed_dictionaries({"enum": st.lists(st.text(max_size=5), min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("number"), "minimum": st.integers(0, 5)}),
    ),
    lambda inner: st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
    max_leaves=3,
)
SCHEMAS = st.dictionaries(st.sampled_from(["text", "label", "n"]), FIELD_SCHEMAS, min_size=1).map(
    lambda fields: {"type": "object", "properties": fields, "required": list(fields)}
)


@given(RECIPE_LIKE | st.dictionaries(st.sampled_from(["type", "properties", "enum"]), RECIPE_LIKE))
def test_any_json_is_a_schema_or_refused(value: Any) -> None:
    try:
        schema = schemas.checked(value)
    except RecipeError:
        return
    assert schemas.described(schema)
    assert schemas.field_names(schema)


@given(SCHEMAS, JSON)
def test_any_answer_fits_a_schema_or_gets_a_sentence(schema: dict[str, Any], answer: Any) -> None:
    checked = schemas.checked(schema)
    problems = answer_check.errors(checked, answer)
    assert all(problem.endswith(".") for problem in problems)
    assert answer_check.first_error(checked, answer) == (problems[0] if problems else "")
    assert len(answer_check.errors(checked, answer, loosely=True)) <= len(problems)
    if not problems:
        assert set(answer) == set(schema["properties"])
        texts = answer_check.free_texts(checked, answer)
        assert all(isinstance(text, str) for text in texts)


@given(SCHEMAS)
def test_every_field_is_described_in_a_line(schema: dict[str, Any]) -> None:
    _, *lines = schemas.described(schema).splitlines()
    assert [line.split(":")[0] for line in lines] == [f"- {name}" for name in schema["properties"]]


# --- Checks -------------------------------------------------------------------


CHECKS = st.fixed_dictionaries(
    {"kind": st.sampled_from(list(KINDS))},
    optional={
        "text": st.sampled_from(["a", "en", "a+", "(", "label == 'x'", "{{ label }}", "a\nb"])
        | st.text(max_size=10),
        "min": st.integers(-1, 5),
        "max": st.integers(0, 9),
        "field": st.sampled_from(["", "text", "label"]),
    },
)


@given(CHECKS, st.text(max_size=40), st.sampled_from(["x", "y"]))
def test_a_check_passes_any_text_or_says_why(check: dict[str, Any], text: str, label: str) -> None:
    columns = [{"name": "label", "values": ["x", "y"]}]
    try:
        recipe = parse({"columns": columns, "prompt": "Write.", "checks": [check]})
    except RecipeError:
        return
    [read] = recipe.written[0].checks
    sentence = read.problem(text, {"label": label, "text": text})
    assert isinstance(sentence, str)
    if read.kind == "length":
        fits = len(text) >= read.smallest and (not read.largest or len(text) <= read.largest)
        assert fits == (sentence == "")
    [again] = (
        parse({"columns": columns, "prompt": "Write.", "checks": [read.to_json()]})
        .written[0]
        .checks
    )
    assert again.problem(text, {"label": label, "text": text}) == sentence
