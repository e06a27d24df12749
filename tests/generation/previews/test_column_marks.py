"""Marks of columns: what an edit changes, and what it makes outdated."""

from typing import Any

import pytest

from apps.generation.previews.column_marks import ColumnMark, column_marks
from apps.generation.recipe.parse import parse

RECIPE: dict[str, Any] = {
    "columns": [
        {"name": "topic", "kind": "category", "values": ["a", "b"]},
        {"name": "detail", "kind": "category", "depends_on": "topic",
         "values": {"a": ["1"], "b": ["2"]}},
        {"name": "day", "kind": "date", "from": "2026-01-01", "to": "2026-01-31"},
        {"name": "text", "kind": "text", "prompt": "About {{ detail }}.",
         "checks": [{"kind": "lacks", "text": "{{ topic }}"}]},
        {"name": "judge", "kind": "judge", "criteria": [{"name": "good", "description": "Is it?"}]},
        {"name": "shout", "kind": "expression", "expression": "text ~ '!'"},
    ]
}  # fmt: skip


def marks(recipe: dict[str, Any] = RECIPE, seed: int = 1, target: str = "") -> list[ColumnMark]:
    return column_marks(parse(recipe), seed, target)


def edited(name: str, **parts: Any) -> dict[str, Any]:
    columns = [column | parts if column["name"] == name else column for column in RECIPE["columns"]]
    return RECIPE | {"columns": columns}


def differing(after: list[ColumnMark], which: str) -> list[str]:
    before = {mark.name: getattr(mark, which) for mark in marks()}
    return [mark.name for mark in after if getattr(mark, which) != before[mark.name]]


def test_the_same_recipe_has_the_same_marks() -> None:
    assert marks() == marks()
    assert [mark.fields for mark in marks()][4:] == [("judge_reason", "good"), ("shout",)]


@pytest.mark.parametrize(
    ("recipe", "changed", "outdated"),
    [
        (edited("day", to="2026-01-30"), ["day"], ["day"]),
        (edited("text", prompt="On {{ detail }}."), ["text"], ["text", "judge", "shout"]),
        (
            edited("topic", values=["a", "b"], weights=[1, 2]),
            ["topic"],
            ["topic", "detail", "text", "judge", "shout"],
        ),
        (edited("judge", prompt="Score it."), ["judge"], ["judge"]),
        (edited("shout", expression="text ~ '?'"), ["shout"], ["shout"]),
        (edited("day", condition="topic == 'a'"), ["day"], ["day"]),
        (RECIPE | {"system": "Be short."}, [], ["text", "judge", "shout"]),
        (RECIPE | {"params": {"temperature": 0.1}}, [], ["text", "judge", "shout"]),
        (
            RECIPE | {"quotas": {"topic": {"a": 3}}},
            ["topic"],
            ["topic", "detail", "text", "judge", "shout"],
        ),
    ],
)
def test_an_edit_makes_what_depends_on_it_outdated(
    recipe: dict[str, Any], changed: list[str], outdated: list[str]
) -> None:
    after = marks(recipe)
    assert (differing(after, "own"), differing(after, "all")) == (changed, outdated)


def test_another_model_makes_the_written_columns_outdated() -> None:
    assert differing(marks(target="3:m"), "all") == ["text", "judge", "shout"]


def test_another_seed_makes_every_column_outdated() -> None:
    assert differing(marks(seed=2), "all") == [mark.name for mark in marks()]
    assert differing(marks(seed=2), "own") == []
