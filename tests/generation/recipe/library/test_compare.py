"""Differences between two versions of a recipe."""

from apps.core.schemas.json_types import JsonObject
from apps.generation.recipe.library.compare import Line, compare_recipes, recipe_lines

RECIPE: JsonObject = {
    "system": "Be kind.\nBe short.",
    "columns": [
        {"name": "topic", "values": ["a", "b"], "keep": True},
        {"name": "text", "prompt": "On {{ topic }}", "params": {"top_p": None}},
    ],
}


def test_a_recipe_as_lines() -> None:
    assert recipe_lines(RECIPE) == [
        "system:",
        "  Be kind.",
        "  Be short.",
        "columns:",
        "  - topic",
        "    name: topic",
        "    values: a, b",
        "    keep: true",
        "  - text",
        "    name: text",
        "    prompt: On {{ topic }}",
        "    params:",
        "      top_p: null",
    ]


def test_changed_lines_have_their_neighbours() -> None:
    changed: JsonObject = {**RECIPE, "system": "Be kind.\nBe long."}
    assert compare_recipes(RECIPE, changed) == [
        Line("same", "system:"),
        Line("same", "  Be kind."),
        Line("removed", "  Be short."),
        Line("added", "  Be long."),
        Line("same", "columns:"),
        Line("same", "  - topic"),
    ]


def test_equal_recipes_have_no_changes() -> None:
    assert compare_recipes(RECIPE, dict(RECIPE)) == []
