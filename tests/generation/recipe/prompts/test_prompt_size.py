"""What a row's prompts may come to: the longest of everything, in any script."""

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.parse import parse
from apps.generation.recipe.prompts.prompt_size import prompt_tokens
from apps.generation.rows.generate_row import row_tokens
from apps.generation.rows.row_steps import Reply, RowRequest, row_steps
from apps.generation.rows.samplers import RowSeed
from apps.llm.thinking import NOT_REPORTED
from apps.servers.models import Server
from tests.generation.conftest import new_job

PASSAGE = "The kettle boils water. " * 800
CHINESE = "这个水壶烧水很快。" * 300
FIELDS = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
COLUMNS: list[dict[str, Any]] = [
    {"name": "who", "kind": "category", "values": ["x", "someone who writes at length " * 20]},
    {"name": "n", "kind": "number", "min": 1, "max": 9},
    {"name": "both", "kind": "expression", "expression": "who ~ n ~ passage_text"},
    {"name": "text", "kind": "text", "prompt": "{{ passage_text }} {{ who }} {{ passage_text }}"},
    {"name": "row", "kind": "structured", "prompt": "Of {{ text }} {{ both }}.", "schema": FIELDS},
]


@pytest.mark.parametrize("text", [PASSAGE, CHINESE], ids=["English", "Chinese"])
@pytest.mark.parametrize("template", ["", "- {{ text }}"])
def test_no_row_asks_for_more_than_was_said(text: str, template: str) -> None:
    seed = {"name": "passage", "kind": "seed", "rows": ["short", text], "template": template}
    recipe = parse({"system": "Be brief.", "columns": [seed, *COLUMNS]})
    tables = {"passage": Table([{"text": "short"}, {"text": text}])}
    said = prompt_tokens(recipe, tables)
    longest = 0
    for index in range(20):
        steps = row_steps(recipe, RowSeed(index, 7, tables=tables))
        ask = next(steps)
        assert isinstance(ask, RowRequest)
        ask = steps.send(Reply("word " * 280, "stop"))
        longest = max(longest, sum(len(message["content"]) for message in ask.messages))
    # A Chinese character may be a token or more; four characters of English are one.
    tokens = longest if text is CHINESE else longest // 4
    assert tokens < said + recipe.max_tokens
    assert said < 6 * tokens  # and not so much more that rows would wait for nothing


def test_examples_count_as_often_as_they_come() -> None:
    def tokens(count: int) -> int:
        seed = {"name": "e", "kind": "seed", "rows": ["a" * 3_000], "count": count}
        column = {"name": "text", "kind": "text", "prompt": "{{ e }}"}
        recipe = parse({"columns": [seed, column]})
        return prompt_tokens(recipe, {"e": Table([{"text": "a" * 3_000}])})

    assert tokens(5) - tokens(1) == pytest.approx(4_000, rel=0.01)


def test_a_job_keeps_what_its_seed_rows_come_to(alice: User, server: Server) -> None:
    seed = {"name": "passage", "kind": "seed", "text": PASSAGE, "format": "lines"}
    text = {"name": "text", "kind": "text", "prompt": "{{ passage_text }}"}
    job = new_job(alice, server, prompt=None, schema=None, attributes={}, columns=[seed, text])
    assert row_tokens(job.spec, NOT_REPORTED) > len(PASSAGE) // 4
    old = replace(job.spec, prompt_tokens=None)
    # A job of an earlier version stored nothing about its rows.
    assert row_tokens(old, NOT_REPORTED) < 1_000
