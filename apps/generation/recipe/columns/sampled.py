"""Columns that no model writes: drawn at random, repeatably, or computed (pure)."""

from datetime import UTC, datetime
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, StrictInt, StrictStr, model_validator

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.fields import ExpressionText, Flag, Numeric, Says
from apps.generation.recipe.problems import Problem, RecipeError


class Number(Column):
    """A whole number, or with `decimals` one with a fraction.

    With `mean` or `deviation` from a normal distribution, drawn again while the number is outside
    of the limits.
    """

    kind: Literal["number"]
    smallest: Numeric = Field(alias="min")
    largest: Numeric = Field(alias="max")
    decimals: Annotated[
        Annotated[StrictInt, Ge(0), Le(9)], Says("Must be an integer from 0 to 9.")
    ] = 0
    mean: Annotated[Numeric | None, Says("Must be a number.")] = None
    deviation: Annotated[Numeric | None, Says("Must be a number.")] = None

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.smallest > self.largest:
            raise RecipeError([Problem(("min",), "The minimum is larger than the maximum.")])
        whole = int(self.smallest) == self.smallest and int(self.largest) == self.largest
        if not self.decimals and not whole:
            message = "With 0 decimals, the limits must be integers."
            raise RecipeError([Problem(("decimals",), message)])
        if self.deviation is not None and self.deviation <= 0:
            raise RecipeError([Problem(("deviation",), "Must be larger than 0.")])
        return self

    @cached_property
    def normal(self) -> NormalDist | None:
        """None: every number is equally likely."""
        if self.mean is None and self.deviation is None:
            return None
        mean = (self.smallest + self.largest) / 2 if self.mean is None else self.mean
        span = self.largest - self.smallest
        return NormalDist(mean, max(span / 6, 1e-9) if self.deviation is None else self.deviation)


def _check_date(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise RecipeError.one(NO_DATE) from error
    return text


NO_DATE = "Must be a date such as 2026-01-31."
DateText = Annotated[StrictStr, Says(NO_DATE), AfterValidator(_check_date)]


class Date(Column):
    """A day, or a time to the minute, as ISO 8601, both ends included."""

    kind: Literal["date"]
    start: DateText = Field(alias="from")
    end: DateText = Field(alias="to")
    with_time: Flag = Field(False, alias="time")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.first > self.last:
            raise RecipeError([Problem(("from",), "The start date is after the end date.")])
        return self

    @cached_property
    def first(self) -> datetime:
        return datetime.fromisoformat(self.start).replace(tzinfo=UTC)

    @cached_property
    def last(self) -> datetime:
        return datetime.fromisoformat(self.end).replace(tzinfo=UTC)


class Uuid(Column):
    """A random identifier (version 4)."""

    kind: Literal["uuid"]


class Expression(Column):
    """Computed from earlier columns, without a model."""

    kind: Literal["expression"]
    expression: ExpressionText
