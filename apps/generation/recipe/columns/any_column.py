"""Union of all kinds of columns, told apart by `kind` (pure)."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Category, Persona
from apps.generation.recipe.columns.judge import Judge
from apps.generation.recipe.columns.sampled import Date, Expression, Number, Uuid
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.written import Structured, Text
from apps.generation.recipe.problems import Problem, RecipeError

_Union = Category | Persona | Number | Date | Uuid | Seed | Expression | Text | Structured | Judge
KINDS = tuple(
    kind for model in get_args(_Union) for kind in get_args(model.model_fields["kind"].annotation)
)


def _with_kind(data: Any) -> Any:
    """Adds the default kind."""
    if not isinstance(data, Mapping):
        raise RecipeError.one(Column.NOT_AN_OBJECT)
    kind = data.get("kind", "category")
    if not isinstance(kind, str) or kind not in KINDS:
        message = f"Unknown column type “{str(kind)[:100]}”. Use {', '.join(KINDS)}."
        raise RecipeError([Problem(("kind",), message)])
    return {**data, "kind": kind}


def _in_order(data: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Column:
    """Reads one column and tells those after it its names."""
    try:
        column: Column = validate(data)
    except ValidationError:
        if info.context is not None:
            info.context.complete = False
        raise
    if info.context is not None:
        info.context.add(column)
    return column


AnyColumn = Annotated[
    Annotated[_Union, Field(discriminator="kind")],
    BeforeValidator(_with_kind),
    WrapValidator(_in_order),
]
AttributeColumn = Annotated[Category, WrapValidator(_in_order)]
"""A column in the short form of a recipe."""
