"""Checks of a column's text."""

import time
from typing import Any

import pytest

from apps.generation.recipe.columns.checks import read
from apps.generation.recipe.problems import RecipeError


@pytest.mark.parametrize(
    ("check", "text", "problem"),
    [
        ({"kind": "length", "min": 3}, "abc", ""),
        ({"kind": "length", "min": 3}, "ab", "2 characters long; at least 3"),
        ({"kind": "length", "max": 3}, "abcd", "4 characters long; at most 3"),
        ({"kind": "contains", "text": "Kettle"}, "a kettle.", ""),
        ({"kind": "contains", "text": "{{ product }}"}, "a kettle.", ""),
        ({"kind": "contains", "text": "{{ product }}"}, "a lamp.", "“kettle” is not in it"),
        ({"kind": "lacks", "text": "lamp\nsofa"}, "a kettle", ""),
        ({"kind": "lacks", "text": "lamp\nsofa"}, "A SOFA", "“sofa” must not be in it"),
        ({"kind": "matches", "text": r"^\w+ \d+$"}, "row 12", ""),
        ({"kind": "matches", "text": r"^\w+ \d+$"}, "row", "does not match"),
        ({"kind": "differs", "text": r"https?://"}, "see http://x", "must not"),
        ({"kind": "differs", "text": r"https?://"}, "see x", ""),
        ({"kind": "language", "text": "en"}, "The kettle boils water quickly.", ""),
        ({"kind": "language", "text": "en"}, "Der Kocher macht das Wasser schnell heiß.", "“de”"),
        ({"kind": "language", "text": "en"}, "Nein.", ""),
        ({"kind": "expression", "text": "stars > 2"}, "x", ""),
        ({"kind": "expression", "text": "stars > 4"}, "x", "“stars > 4” is not so"),
        ({"kind": "expression", "text": "stars > product"}, "x", "cannot be worked out"),
    ],
)
def test_says_why(check: dict[str, Any], text: str, problem: str) -> None:
    found = read(check).problem(text, {"product": "kettle", "stars": 3})
    assert found.startswith(problem) if not problem else problem in found
    assert bool(found) == bool(problem)


def test_what_is_stored_is_read_again() -> None:
    for check in ({"kind": "length", "min": 3}, {"kind": "lacks", "field": "a", "text": "x"}):
        assert read(read(check).as_dict()) == read(check)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        ("x", "has a kind"),
        ({"kind": "magic"}, "has a kind"),
        ({"kind": "length", "min": -1}, "a number of characters"),
        ({"kind": "length", "min": 5, "max": 3}, "larger than the largest"),
        ({"kind": "matches", "text": "("}, "The pattern cannot be used: missing )"),
        ({"kind": "matches", "text": r"(a)\1"}, "The pattern cannot be used"),
        ({"kind": "matches", "text": "a" * 1001}, "at most 1,000"),
        ({"kind": "contains", "text": " "}, "Say which text"),
        ({"kind": "language", "text": "klingon"}, "no language known here"),
        ({"kind": "expression", "text": "a.__b__"}, "attributes cannot be used"),
        ({"kind": "length", "min": 1, "colour": 2}, "no part “colour”"),
    ],
)
def test_what_is_wrong(check: Any, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence.replace(")", r"\)")):
        read(check)


def test_a_pattern_cannot_keep_the_worker_busy() -> None:
    check = read({"kind": "matches", "text": "(a+)+$"})
    start = time.process_time()
    assert check.problem("a" * 50_000 + "!", {})
    assert time.process_time() - start < 1
