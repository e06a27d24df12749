"""Marks of a recipe's columns: which preview cells an edit makes outdated (pure).

Two recipes give a column the same `own` mark if the column itself is the same, and the same `all`
mark if everything that its value depends on is the same.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.sampled import Expression
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True)
class ColumnMark:
    name: str
    fields: tuple[str, ...]
    """The fields that it gives the finished row."""
    own: str
    all: str


def column_marks(recipe: Recipe, seed: int, target: str) -> list[ColumnMark]:
    """
    Args:
        target: server and model, as the form names them.
    """
    marks: list[ColumnMark] = []
    source: dict[str, str] = {}  # name that templates read: the mark of its column
    conversation = _mark([recipe.system, target])
    for column in recipe.columns:
        settings = dict(recipe.params) if isinstance(column, Written) else {}
        quotas = dict(column.quotas) if isinstance(column, Choice) else {}
        own = _mark([column.to_json(), quotas])
        read = {name: source.get(name, "") for name in sorted(set(_names_read(column)))}
        parts: list[object] = [own, seed, settings, read]
        if isinstance(column, Written):  # it continues from those before
            parts.append(conversation)
        whole = _mark(parts)
        if isinstance(column, Written):
            conversation = whole
        source |= dict.fromkeys(column.names, whole)
        marks.append(ColumnMark(column.name, column.fields, own, whole))
    return marks


def _mark(value: list[object]) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _names_read(column: Column) -> Iterator[str]:
    """The names of earlier columns that its value depends on."""
    if column.condition:
        yield from templates.names_in(column.condition, expression=True)
    match column:
        case Written():
            yield from templates.names_in(column.prompt)
            for check in column.checks:
                if check.kind == "expression":
                    yield from templates.names_in(check.text, expression=True)
                elif "{{" in check.text:
                    yield from templates.names_in(check.text)
        case Expression():
            yield from templates.names_in(column.expression, expression=True)
        case Seed() if column.match:
            yield column.match
        case Choice() if column.depends_on:
            yield column.depends_on
