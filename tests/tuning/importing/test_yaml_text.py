"""YAML of strangers: read as plain values, and never larger or deeper than allowed."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tuning.errors import PlanError
from apps.tuning.importing.yaml_text import MAX_ALIASES, MAX_DEPTH, read_yaml


def test_plain_values_are_read() -> None:
    assert read_yaml("a: [1, true, x]\nb: {c: null}") == {"a": [1, True, "x"], "b": {"c": None}}
    assert read_yaml("") is None


def test_an_alias_stands_for_its_anchor() -> None:
    assert read_yaml("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}") == {
        "a": {"b": 1},
        "c": {"b": 1},
        "d": {"b": 1, "e": 2},
    }


def test_the_deepest_that_is_allowed_is_read() -> None:
    assert read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    with pytest.raises(PlanError, match="nested more than 16"):
        read_yaml("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "a: &a {x: 1}\nb: &b\n  <<: [*a, *a]\n",
        "a: &a {k: *a}",
        "a: &a x\nb: [" + "*a, " * (MAX_ALIASES + 1) + "]",
    ],
)
def test_anchors_that_could_grow_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="An anchor"):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: b: c", "Line 1 is not YAML"),
        ("a: 1\n\tb: 2", "Line 2 is not YAML"),
        ("a: *nobody", "Line 1 is not YAML"),
        ("a: !!python/name:os.system", "Line 1 is not YAML"),
        ("a: !secret x", "Line 1 is not YAML"),
        ("{[a]: 1}", "Line 1 is not YAML"),
        ("a: 2020-99-99", "not YAML"),
        ("a: !!bool maybe", "not YAML"),
        ("a: !!timestamp now", "not YAML"),
        ("a: !!int ''", "not YAML"),
        ("a\x00b", "not YAML"),
        ("a: 1\n---\nb: 2", "not YAML"),
    ],
)
def test_what_is_no_yaml_is_refused_with_the_line(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        read_yaml(text)


TAGS = ["!!bool", "!!int", "!!float", "!!null", "!!str", "!!binary", "!!timestamp", "!!set", "!x"]


@given(st.sampled_from(TAGS), st.text(alphabet="0x1b-+:._ae'\"[]{}!&*\n", max_size=20))
def test_any_value_behind_any_tag_is_read_or_refused(tag: str, value: str) -> None:
    with suppress(PlanError):
        read_yaml(f"a: {tag} {value}")
