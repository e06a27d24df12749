"""Columns that no model writes, in the API's words (pure)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from apps.generation.recipe.columns import parse_fields as parts
from apps.generation.recipe.columns import seeds
from apps.generation.recipe.columns.columns import (
    Category,
    Column,
    Date,
    Expression,
    Number,
    Options,
    Seed,
    Uuid,
)
from apps.generation.recipe.columns.parse_fields import Data, Names
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates

MAX_VALUES = 5_000
MAX_VALUE = 2_000  # characters
MAX_EXAMPLES = 50
DATASET_FIELDS = ("text", "label")


def category(data: Data, names: Names, common: Data) -> Column:
    name = common["name"]
    depends_on = parts.earlier(data, "depends_on", names)
    values = data.get("values")
    if not depends_on:
        if isinstance(values, Mapping):
            message = f"“{name}” has values that depend on another column. Set depends_on."
            raise RecipeError.of(message)
        return Category(**common, options=_options(name, values, data.get("weights")))
    if not isinstance(values, Mapping) or not values:
        raise RecipeError.of(
            f"“{name}” depends on “{depends_on}”: its values are an object, "
            f"value of “{depends_on}” to a list."
        )
    branches = {
        str(value).strip(): _options(f"{name} ({value})", found, None)
        for value, found in values.items()
    }
    return Category(**common, depends_on=depends_on, branches=branches)


def persona(data: Data, names: Names, common: Data) -> Column:
    parts.text(data, "about")
    options = _options(common["name"], data.get("values"), None)
    return Category(**common, options=options, persona=True)


def _options(name: str, values: Any, weights: Any) -> Options:
    if not isinstance(values, list) or not values:
        raise RecipeError.of(f"“{name}” needs at least one value.")
    if len(values) > MAX_VALUES:
        raise RecipeError.of(
            f"“{name}” has {len(values):,} values and the limit is {MAX_VALUES:,}."
        )
    if weights is None and any(isinstance(value, Mapping) for value in values):
        weights = [v.get("weight", 1) if isinstance(v, Mapping) else 1 for v in values]
        values = [v.get("value") if isinstance(v, Mapping) else v for v in values]
    texts = [_value(name, value) for value in values]
    if weights is None:
        return Options(tuple(dict.fromkeys(texts)))
    if not isinstance(weights, list) or len(weights) != len(texts):
        raise RecipeError.of(f"“{name}” needs as many weights as values.")
    if len(set(texts)) < len(texts):
        raise RecipeError.of(
            f"“{name}” lists a value twice. List it once, with both weights added."
        )
    for weight in weights:
        if (
            not isinstance(weight, int | float)
            or isinstance(weight, bool)
            or not 0 <= weight <= parts.MAX_NUMBER
        ):
            raise RecipeError.of(f"A weight of “{name}” is not a number of 0 or more.")
    if not sum(weights):
        raise RecipeError.of(f"All weights of “{name}” are 0.")
    return Options(tuple(texts), tuple(float(weight) for weight in weights))


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecipeError.of(f"A value of “{name}” is empty or not a string.")
    text = str(value).strip()
    if not text:
        raise RecipeError.of(f"A value of “{name}” is empty or not a string.")
    if len(text) > MAX_VALUE:
        raise RecipeError.of(f"A value of “{name}” is longer than {MAX_VALUE:,} characters.")
    return text


def number(data: Data, names: Names, common: Data) -> Column:
    smallest, largest = parts.number(data, "min"), parts.number(data, "max")
    decimals = parts.whole(data, "decimals", 0, 0, 9)
    if smallest > largest:
        raise RecipeError([Problem(("min",), "The minimum is larger than the maximum.")])
    if not decimals and (int(smallest) != smallest or int(largest) != largest):
        message = "With 0 decimals, the limits must be integers."
        raise RecipeError([Problem(("decimals",), message)])
    normal = "mean" in data or "deviation" in data
    mean = parts.number(data, "mean", (smallest + largest) / 2)
    deviation = parts.number(data, "deviation", max((largest - smallest) / 6, 1e-9))
    if normal and deviation <= 0:
        raise RecipeError([Problem(("deviation",), "Must be larger than 0.")])
    return Number(
        **common,
        smallest=smallest,
        largest=largest,
        decimals=decimals,
        normal=normal,
        mean=mean,
        deviation=deviation,
    )


def date(data: Data, names: Names, common: Data) -> Column:
    first, last = _moment(data, "from"), _moment(data, "to")
    if first > last:
        raise RecipeError([Problem(("from",), "The start date is after the end date.")])
    with_time = data.get("time", False)
    if not isinstance(with_time, bool):
        raise RecipeError([Problem(("time",), "Must be true or false.")])
    return Date(**common, first=first, last=last, with_time=with_time)


def _moment(data: Data, name: str) -> datetime:
    try:
        return datetime.fromisoformat(parts.text(data, name)).replace(tzinfo=UTC)
    except ValueError as error:
        message = "Must be a date such as 2026-01-31."
        raise RecipeError([Problem((name,), message)]) from error


def uuid(data: Data, names: Names, common: Data) -> Column:
    return Uuid(**common)


def seed(data: Data, names: Names, common: Data) -> Column:
    order = data.get("order", "sample")
    if order not in {"sample", "walk"}:
        raise RecipeError([Problem(("order",), "Must be `sample` (random) or `walk` (in order).")])
    fields = _seed_fields(data)
    match = parts.earlier(data, "match", names)
    template = parts.text(data, "template").strip()
    if template:
        parts.at("template", templates.check, template, fields)
    return Seed(
        **common,
        row_fields=fields,
        count=parts.whole(data, "count", 1, 1, MAX_EXAMPLES),
        walk=order == "walk",
        match=match,
        match_field=parts.text(data, "match_field") or "label",
        template=template,
    )


def _seed_fields(data: Data) -> tuple[str, ...]:
    """What a row of the source has: told by the source itself, or by whoever stored its rows."""
    told = data.get("fields")
    if told is not None:
        if not isinstance(told, list) or not told:
            raise RecipeError([Problem(("fields",), "Must be a list of names.")])
        for name in told:
            parts.at("fields", templates.check_name, str(name))
        return tuple(map(str, told))
    if data.get("dataset") is not None:
        parts.whole(data, "dataset", 0, 1, 2**62)
        return DATASET_FIELDS
    if "rows" in data or "text" in data:
        return seeds.field_names(seeds.read(data))
    raise RecipeError.of("Choose a source for the seed rows: a dataset, rows or text.")


def expression(data: Data, names: Names, common: Data) -> Column:
    source = parts.text(data, "expression").strip()
    parts.at("expression", templates.check_expression, source, names)
    return Expression(**common, expression=source)
