"""Columns that the model writes (pure)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictInt,
    ValidationInfo,
)

from apps.core.schemas import json_schemas
from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.checks import Checks
from apps.generation.recipe.fields import Prompt, Says
from apps.generation.recipe.params import ParamValue, SamplingParams
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.names import check_name

MAX_CANDIDATES = 10

Candidates = Annotated[
    Annotated[StrictInt, Ge(1), Le(MAX_CANDIDATES)],
    Says(f"Must be a whole number from 1 to {MAX_CANDIDATES}."),
]
ColumnParams = Annotated[
    SamplingParams, BeforeValidator(lambda params: {} if params is None else params)
]


def _check_schema(schema: Any, info: ValidationInfo) -> Any:
    if not schema:
        raise RecipeError.one("Add at least one field.")
    return checked_row_schema(schema, info)


def checked_row_schema(schema: Any, info: ValidationInfo) -> dict[str, Any]:
    """The schema of a row; of a new recipe also free of contradictions."""
    found = schemas.checked(schema)
    is_new = info.context is not None and info.context.is_new
    if is_new and (problem := json_schemas.contradiction(found)):
        raise RecipeError.one(problem)
    return found


def _check_field_names(schema: dict[str, Any]) -> dict[str, Any]:
    for name in schemas.field_names(schema):
        check_name(name)
    return schema


RowSchema = Annotated[
    dict[str, Any], AfterValidator(_check_field_names), BeforeValidator(_check_schema)
]


class Written(Column):
    """A request to the model. Later ones continue the same conversation."""

    prompt: Prompt
    params: ColumnParams = Field(default_factory=SamplingParams)
    """Differences from the recipe's parameters."""
    checks: Checks = ()
    candidates: Candidates = 1
    """More than one: the model writes this many with their probabilities, and one is drawn by them
    (verbalized sampling, Zhang et al. 2025, arXiv 2510.01171)."""

    @property
    def own_params(self) -> dict[str, ParamValue]:
        return self.params.to_json()

    @cached_property
    def answer_schema(self) -> Mapping[str, Any] | None:
        """The schema of one answer as it becomes part of the row; None for plain text."""
        return None

    @cached_property
    def has_checks(self) -> bool:
        """True if a well-formed answer may still be rejected."""
        return bool(self.checks)

    @cached_property
    def request_schema(self) -> Mapping[str, Any] | None:
        """The schema for the server to enforce."""
        if self.candidates == 1:
            return self.answer_schema
        return candidates_schema(self.answer_schema or {"type": "string"}, self.candidates)


def candidates_schema(answer: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Several answers, each with its probability."""
    candidate = {
        "type": "object",
        "required": ["answer", "probability"],
        "properties": {
            "answer": dict(answer),
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
        },
    }
    found = {"type": "array", "minItems": count, "maxItems": count, "items": candidate}
    return {"type": "object", "required": ["candidates"], "properties": {"candidates": found}}


class Text(Written):
    """Plain text."""

    kind: Literal["text"]


class Structured(Written):
    """An object whose fields become fields of the row."""

    kind: Literal["structured"]
    row_schema: RowSchema = Field(alias="schema")

    @cached_property
    def answer_schema(self) -> Mapping[str, Any] | None:
        return self.row_schema

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(schemas.field_names(self.row_schema))


class Answer(Written):
    """The recipe's own `prompt` and `schema`: its fields, or `text`, are the row."""

    name: str = ""
    kind: str = ""
    row_schema: dict[str, Any] | None = None

    @cached_property
    def answer_schema(self) -> Mapping[str, Any] | None:
        return self.row_schema

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(schemas.field_names(self.row_schema))
