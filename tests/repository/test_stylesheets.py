"""Rules for narrow windows come after those that they change, and light and dark differ by colours.

Of two rules the later one counts. axe's rules that read no colour are run on the light page alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "static"
BLOCK = re.compile(r"([^{}]+)\{((?:[^{}]|\{[^{}]*\})*)\}")

Rule = tuple[str, frozenset[str]]
"""A selector and the names of its properties."""


def rules(css: str) -> Iterator[Rule]:
    for selectors, body in BLOCK.findall(css):
        properties = frozenset(
            part.split(":")[0].strip() for part in body.split(";") if ":" in part
        )
        for selector in selectors.split(","):
            yield selector.strip(), properties


def ineffective(css: str) -> list[str]:
    """The selectors of narrow windows whose properties a later rule for all windows sets again."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    narrow: list[Rule] = []
    found = []
    for head, body in BLOCK.findall(css):
        if head.strip().startswith("@media") and "width" in head:
            narrow += rules(body)
        elif not head.strip().startswith("@"):
            for selector, properties in rules(f"{head}{{{body}}}"):
                found += [name for name, set_ in narrow if name == selector and set_ & properties]
    return found


@pytest.mark.parametrize(
    "path", sorted(STATIC.rglob("*.css")), ids=lambda path: str(path.relative_to(STATIC))
)
def test_no_narrow_rule_is_undone_by_a_later_one(path: Path) -> None:
    assert ineffective(path.read_text(encoding="utf-8")) == []


def test_an_undone_rule_is_found() -> None:
    css = "@media (max-width: 860px) { .a, .b { width: 1px; color: red } }\n.b { width: 2px }"
    assert ineffective(css) == [".b"]
    assert ineffective(css.replace(".b { width: 2px }", ".b { height: 2px }")) == []


def look_dependent(css: str) -> list[str]:
    """What may differ between light and dark beside `light-dark()`, which takes colours alone."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    queries = re.findall(r"prefers-color-scheme", css)
    themed = [
        f"{name} {set_ - {'color-scheme'}}"
        for name, set_ in rules(css)
        if "data-theme" in name and set_ != {"color-scheme"}
    ]
    return queries + themed


@pytest.mark.parametrize(
    "path", sorted(STATIC.rglob("*.css")), ids=lambda path: str(path.relative_to(STATIC))
)
def test_light_and_dark_differ_by_colours_alone(path: Path) -> None:
    if "vendor" not in path.parts:
        assert look_dependent(path.read_text(encoding="utf-8")) == []


def test_another_difference_is_found() -> None:
    assert look_dependent("@media (prefers-color-scheme: dark) { .a { width: 1px } }")
    assert look_dependent('[data-theme="dark"] .a { width: 1px }')
    assert look_dependent('[data-theme="dark"] { color-scheme: dark }') == []
