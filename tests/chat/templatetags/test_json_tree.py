"""Answers that are JSON, as a tree."""

import pytest

from apps.chat.templatetags.answers import answer
from apps.chat.templatetags.json_tree import parse, render


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (' [1, "x"] ', [1, "x"]),
        ('```json\n{"a": [true]}\n```', {"a": [True]}),
        ("```\n[]\n```", []),
        ("1", None),
        ('"text"', None),
        ("Here it is: {}", None),
        ('{"a": ', None),
        ("[" * 100_000, None),
        ("[" * 60 + "]" * 60, None),
        ("[" + "1," * 4000 + "1]", None),
    ],
    ids=range(11),
)
def test_parse_returns_the_value_of_json_objects_and_lists(text: str, value: object) -> None:
    assert parse(text) == value


def test_a_tree() -> None:
    html = render({"name": "Blue", "tags": ["a", "b"], "n": 1.5, "ok": True, "no": None, "e": {}})
    assert "<summary>{6}</summary>" in html
    assert '<span class="tree-key">tags</span>: [2]' in html
    assert '<span class="tree-string">Blue</span>' in html
    assert '<span class="tree-number">1.5</span>' in html
    assert '<span class="tree-word">null</span>' in html
    assert '<span class="tree-word">{}</span>' in html


def test_json_tree_escapes_html() -> None:
    assert "<script>" not in answer('{"<script>": "<script>alert(1)</script>"}')
    assert "<script>" not in answer("<script>alert(1)</script>")
    assert "<strong>" in answer("**bold**")
