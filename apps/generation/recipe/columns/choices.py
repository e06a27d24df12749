"""Columns that draw one of some values (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, SkipValidation, ValidationInfo, field_validator
from typing_extensions import TypedDict

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.fields import MAX_NUMBER, EarlierName, String
from apps.generation.recipe.problems import RecipeError

MAX_VALUES = 5_000
MAX_VALUE = 2_000  # characters


@dataclass(frozen=True, slots=True)
class Options:
    """Values to choose from. Without weights all are equally likely."""

    values: tuple[str, ...]
    weights: tuple[float, ...] = ()


class WeightedValue(TypedDict):
    value: str | int | float
    weight: int | float


ValueList = list[str | int | float | WeightedValue]


class Choice(Column):
    """Random choice of a value. With `depends_on`, that column's value decides which ones."""

    INTERNAL = frozenset({"quotas"})

    depends_on: EarlierName = ""
    weights: SkipValidation[list[int | float] | None] = None
    """One per value."""
    given: ValueList | dict[str, ValueList] = Field(alias="values")
    """A list, or with `depends_on` an object: value of that column to a list."""
    quotas: Mapping[str, int] = Field(default_factory=dict)
    """Rows per value; the other rows share the values without one."""

    @field_validator("given", mode="plain", json_schema_input_type=ValueList | dict[str, ValueList])
    @classmethod
    def _check_values(cls, given: Any, info: ValidationInfo) -> Any:
        """Stripped texts, with their weights where these stand beside them."""
        name, depends_on = info.data.get("name"), info.data.get("depends_on", "")
        if name is None:
            return given  # the name's own error is enough
        if depends_on:
            if not isinstance(given, Mapping) or not given:
                raise RecipeError.one(
                    f"“{name}” depends on “{depends_on}”: its values are an object, "
                    f"value of “{depends_on}” to a list."
                )
            return {
                str(value).strip(): _checked_list(f"{name} ({value})", values, None)
                for value, values in given.items()
            }
        if isinstance(given, Mapping):
            raise RecipeError.one(
                f"“{name}” has values that depend on another column. Set depends_on."
            )
        return _checked_list(name, given, info.data.get("weights"))

    @cached_property
    def options(self) -> Options:
        return Options(()) if isinstance(self.given, dict) else _options(self.given, self.weights)

    @cached_property
    def branches(self) -> Mapping[str, Options]:
        """Value of the column it depends on, to the options for it."""
        if not isinstance(self.given, dict):
            return {}
        return {value: _options(values, None) for value, values in self.given.items()}

    @property
    def values(self) -> tuple[str, ...]:
        """Return all possible values."""
        branches = self.branches.values() if self.depends_on else [self.options]
        return tuple(dict.fromkeys(value for branch in branches for value in branch.values))


class Category(Choice):
    kind: Literal["category"] = "category"


class Persona(Choice):
    """People that a model wrote; drawn like the values of a category."""

    INTERNAL = Choice.INTERNAL | {"depends_on", "weights"}

    kind: Literal["persona"]
    about: String = ""


def _options(values: ValueList, weights: list[int | float] | None) -> Options:
    texts = tuple(str(value["value"] if isinstance(value, dict) else value) for value in values)
    if weights is None:
        weights = [value["weight"] for value in values if isinstance(value, dict)]
    return Options(texts, tuple(map(float, weights)))


def _checked_list(name: str, values: Any, weights: Any) -> ValueList:
    if not isinstance(values, list) or not values:
        raise RecipeError.one(f"“{name}” needs at least one value.")
    if len(values) > MAX_VALUES:
        raise RecipeError.one(
            f"“{name}” has {len(values):,} values and the limit is {MAX_VALUES:,}."
        )
    pairs = weights is None and any(isinstance(value, Mapping) for value in values)
    if pairs:
        weights = [v.get("weight", 1) if isinstance(v, Mapping) else 1 for v in values]
        values = [v.get("value") if isinstance(v, Mapping) else v for v in values]
    texts = [_checked_value(name, value) for value in values]
    if weights is None:
        return list(dict.fromkeys(texts))
    _check_weights(name, weights, texts)
    if pairs:
        return [
            {"value": text, "weight": weight} for text, weight in zip(texts, weights, strict=True)
        ]
    return list(texts)


def _check_weights(name: str, weights: Any, texts: list[str]) -> None:
    if not isinstance(weights, list) or len(weights) != len(texts):
        raise RecipeError.one(f"“{name}” needs as many weights as values.")
    if len(set(texts)) < len(texts):
        raise RecipeError.one(
            f"“{name}” lists a value twice. List it once, with both weights added."
        )
    for weight in weights:
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not 0 <= weight <= MAX_NUMBER:
            raise RecipeError.one(f"A weight of “{name}” is not a number of 0 or more.")
    if not sum(weights):
        raise RecipeError.one(f"All weights of “{name}” are 0.")


def _checked_value(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecipeError.one(f"A value of “{name}” is empty or not a string.")
    text = str(value).strip()
    if not text:
        raise RecipeError.one(f"A value of “{name}” is empty or not a string.")
    if len(text) > MAX_VALUE:
        raise RecipeError.one(f"A value of “{name}” is longer than {MAX_VALUE:,} characters.")
    return text
