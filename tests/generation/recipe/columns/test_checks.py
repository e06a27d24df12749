"""Checks of a column's text."""

from typing import Any

import pytest

from apps.generation.recipe.columns.checks import Check
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from tests.cpu_time import bounded_cpu


def parsed(check: Any) -> Check:
    columns = [{"name": name, "values": ["x"]} for name in ("product", "stars", "a")]
    recipe = parse({"columns": columns, "prompt": "Write.", "checks": [check]})
    return recipe.written[0].checks[0]


@pytest.mark.parametrize(
    ("check", "text", "problem"),
    [
        ({"kind": "length", "min": 3}, "abc", ""),
        ({"kind": "length", "min": 3}, "ab", "Too short: 2 characters, minimum 3"),
        ({"kind": "length", "max": 3}, "abcd", "Too long: 4 characters, maximum 3"),
        ({"kind": "contains", "text": "Kettle"}, "a kettle.", ""),
        ({"kind": "contains", "text": "{{ product }}"}, "a kettle.", ""),
        (
            {"kind": "contains", "text": "{{ product }}"},
            "a lamp.",
            "Required text missing: “kettle”",
        ),
        ({"kind": "lacks", "text": "lamp\nsofa"}, "a kettle", ""),
        ({"kind": "lacks", "text": "lamp\nsofa"}, "A SOFA", "Contains forbidden text: “sofa”"),
        ({"kind": "matches", "text": r"^\w+ \d+$"}, "row 12", ""),
        ({"kind": "matches", "text": r"^\w+ \d+$"}, "row", "Does not match"),
        ({"kind": "differs", "text": r"https?://"}, "see http://x", "forbidden pattern"),
        ({"kind": "differs", "text": r"https?://"}, "see x", ""),
        ({"kind": "language", "text": "en"}, "The kettle boils water quickly.", ""),
        ({"kind": "language", "text": "en"}, "Der Kocher macht das Wasser schnell heiß.", "“de”"),
        ({"kind": "language", "text": "en"}, "Nein.", ""),
        ({"kind": "expression", "text": "stars > 2"}, "x", ""),
        ({"kind": "expression", "text": "stars > 4"}, "x", "Check failed: stars > 4"),
        ({"kind": "expression", "text": "stars > product"}, "x", "could not be evaluated"),
    ],
)
def test_says_why(check: dict[str, Any], text: str, problem: str) -> None:
    found = parsed(check).problem(text, {"product": "kettle", "stars": 3})
    assert found.startswith(problem) if not problem else problem in found
    assert bool(found) == bool(problem)


def test_what_is_stored_is_read_again() -> None:
    for check in ({"kind": "length", "min": 3}, {"kind": "lacks", "field": "text", "text": "x"}):
        assert parsed(parsed(check).to_json()) == parsed(check)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        ("x", "needs a type"),
        ({"kind": "magic"}, "needs a type"),
        ({"kind": "length", "min": -1}, "a number of characters"),
        ({"kind": "length", "min": 5, "max": 3}, "larger than the maximum"),
        ({"kind": "matches", "text": "("}, "The pattern is not valid: missing )"),
        ({"kind": "matches", "text": r"(a)\1"}, "The pattern is not valid"),
        ({"kind": "matches", "text": "a" * 1001}, "The limit is 1,000"),
        ({"kind": "contains", "text": " "}, "Enter the text"),
        ({"kind": "language", "text": "klingon"}, "Unknown language “klingon”"),
        ({"kind": "expression", "text": "a.__b__"}, "do not support attributes"),
        ({"kind": "length", "min": 1, "colour": 2}, "Unknown check key “colour”"),
    ],
)
def test_parse_check_says_what_is_wrong(check: Any, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence.replace(")", r"\)")):
        parsed(check)


def test_a_pattern_cannot_keep_the_worker_busy() -> None:
    check = parsed({"kind": "matches", "text": "(a+)+$"})
    with bounded_cpu():
        assert check.problem("a" * 50_000 + "!", {})
