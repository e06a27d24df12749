"""The columns of a recipe, in order: what each kind holds (pure).

A column gives the row one value or several. `names` is what later templates may use, `fields` what
of it stands in the finished row. What a column is told in the API's words is kept in `source`, so
that a recipe is stored as it was written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.checks import Check

JUDGE_PROMPT = "Judge what you wrote above, strictly. Give the reason first, then the scores."


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    source: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    condition: str = ""
    """An expression over earlier columns; where it is false the column stays empty."""
    keep: bool = True
    """Whether it stands in the finished row, or only helps to make it."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.names if self.keep else ()


# --- Drawn by chance, repeatably ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    """Values to choose from. Without weights all are as likely."""

    values: tuple[str, ...]
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Category(Column):
    """One of some values. With `depends_on`, which ones is up to that column's value."""

    options: Options = field(default_factory=lambda: Options(()))
    depends_on: str = ""
    branches: Mapping[str, Options] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    """How many rows get which value; the other rows share the values without one."""
    persona: bool = False
    """A list of people that a model wrote; drawn like any other value."""

    @property
    def values(self) -> tuple[str, ...]:
        """All values there are."""
        if not self.depends_on:
            return self.options.values
        return tuple(
            dict.fromkeys(value for branch in self.branches.values() for value in branch.values)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Column):
    """A whole number, or with `decimals` one with a fraction.

    `normal` draws around `mean` with the standard deviation `deviation`, drawn again while it falls
    outside of the limits.
    """

    smallest: float
    largest: float
    decimals: int = 0
    normal: bool = False
    mean: float = 0.0
    deviation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Date(Column):
    """A day, or a time to the minute, as ISO 8601; both ends may come."""

    first: datetime
    last: datetime
    with_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Uuid(Column):
    """A random identifier (version 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed(Column):
    """Rows of real data: one, whose fields later templates may use, or several as examples.

    The rows themselves are not here: `apps.generation.recipe.columns.seeds.Table` holds them.
    """

    row_fields: tuple[str, ...]
    count: int = 1
    walk: bool = False
    """One after the other, each as often as any other, instead of by chance."""
    match: str = ""
    """A column: only rows whose `match_field` equals its value are used."""
    match_field: str = "label"
    template: str = ""
    """How a row is written where it serves as an example."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self._single)

    @property
    def fields(self) -> tuple[str, ...]:
        return self._single if self.keep else ()

    @property
    def _single(self) -> tuple[str, ...]:
        if self.count != 1:
            return ()
        return tuple(f"{self.name}_{part}" for part in self.row_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression(Column):
    """Worked out from earlier columns, without a model."""

    expression: str


# --- Written by the model -----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Column):
    """A request to the model. Later ones go on in the same conversation."""

    prompt: str
    params: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the recipe's parameters."""
    checks: tuple[Check, ...] = ()
    candidates: int = 1
    """More than one: the model writes so many with their probabilities, and one is drawn by them
    (verbalized sampling, Zhang et al. 2025, arXiv 2510.01171)."""

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """Of one answer as it becomes part of the row; None for plain text."""
        return None

    @property
    def asked_schema(self) -> Mapping[str, Any] | None:
        """What the server is to enforce."""
        if self.candidates == 1:
            return self.schema
        inner = self.schema or {"type": "string"}
        return {
            "type": "object",
            "required": ["candidates"],
            "properties": {
                "candidates": {
                    "type": "array",
                    "minItems": self.candidates,
                    "maxItems": self.candidates,
                    "items": {
                        "type": "object",
                        "required": ["answer", "probability"],
                        "properties": {
                            "answer": dict(inner),
                            "probability": {"type": "number", "minimum": 0, "maximum": 1},
                        },
                    },
                }
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Written):
    """Plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structured(Written):
    """An object whose fields become fields of the row."""

    row_schema: Mapping[str, Any]

    @property
    def schema(self) -> Mapping[str, Any] | None:
        return self.row_schema

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(schemas.field_names(self.row_schema))


@dataclass(frozen=True, slots=True)
class Criterion:
    name: str
    description: str
    largest: int = 5
    at_least: int = 0
    """A row with a lower score is rejected; 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge(Written):
    """Scores the model gives its row, each with a threshold; the reason comes first."""

    criteria: tuple[Criterion, ...]

    @property
    def schema(self) -> Mapping[str, Any] | None:
        return {
            "type": "object",
            "required": [self.reason_name, *(criterion.name for criterion in self.criteria)],
            "properties": {
                self.reason_name: {"type": "string", "maxLength": 300},
                **{
                    criterion.name: {
                        "type": "integer",
                        "enum": list(range(1, criterion.largest + 1)),
                        "description": criterion.description,
                    }
                    for criterion in self.criteria
                },
            },
        }

    @property
    def reason_name(self) -> str:
        return f"{self.name}_reason"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.reason_name, *(criterion.name for criterion in self.criteria))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Written):
    """The recipe's own `prompt` and `schema`: its fields, or `text`, are the row."""

    row_schema: Mapping[str, Any] | None = None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        return self.row_schema

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(schemas.field_names(self.row_schema))
