"""The JSON of a recipe, as the API takes and returns it (pure).

The short form (`prompt`, `schema`, `attributes`) and the long one (`columns`) mean the same:
attributes are category columns, the prompt is the last column, whose fields are the row.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictStr,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
)

from apps.core.schemas.documented import DocumentedAs
from apps.generation.recipe.columns.any_column import AnyColumn, AttributeColumn
from apps.generation.recipe.columns.checks import Checks
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.context import ParseContext, context_of
from apps.generation.recipe.columns.written import (
    Answer,
    Candidates,
    ColumnParams,
    Written,
    checked_row_schema,
)
from apps.generation.recipe.fields import NO_PROMPT, Part, Says, known_names
from apps.generation.recipe.params import SamplingParams
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.quotas import Quotas
from apps.generation.recipe.recipe import Recipe

MAX_COLUMNS = 50
MAX_WRITTEN = 10
MAX_SYSTEM = 50_000  # characters
TOO_MANY_COLUMNS = f"Up to {MAX_COLUMNS} columns are allowed."


def _check_system(text: str) -> str:
    if len(text) > MAX_SYSTEM:
        raise RecipeError.one(f"Too long: {len(text):,} characters. The limit is {MAX_SYSTEM:,}.")
    if "{{" in text:
        raise RecipeError.one(
            "The system prompt must be the same for every row so that it can be cached. "
            "Use {{ columns }} in the prompt instead."
        )
    return text.strip()


def _as_columns(attributes: Any) -> Any:
    if not attributes:
        return {}
    if not isinstance(attributes, Mapping):
        raise RecipeError.one("Attributes are an object: name to values.")
    if len(attributes) > MAX_COLUMNS:
        raise RecipeError.one(TOO_MANY_COLUMNS)
    return {
        name: {"name": name, "kind": "category", "values": values}
        for name, values in attributes.items()
    }


def _check_list(columns: Any) -> Any:
    if not columns:
        return []
    if not isinstance(columns, list):
        raise RecipeError.one("Columns must be a list.")
    if len(columns) > MAX_COLUMNS:
        raise RecipeError.one(TOO_MANY_COLUMNS)
    return columns


def _check_number_of_columns(columns: Any, info: ValidationInfo) -> Any:
    known = context_of(info).columns
    if len(known) > MAX_COLUMNS:
        raise RecipeError.one(TOO_MANY_COLUMNS)
    if sum(isinstance(column, Written) for column in known) > MAX_WRITTEN:
        raise RecipeError.one(f"Up to {MAX_WRITTEN} columns can be written by the model.")
    return columns


def _check_schema(schema: Any, info: ValidationInfo) -> dict[str, Any] | None:
    return checked_row_schema(schema, info) if schema else None


def _check_prompt(prompt: Any, info: ValidationInfo) -> str | None:
    if not prompt and context_of(info).has_request and not info.data.get("row_schema"):
        return None
    if not isinstance(prompt, str) or not prompt.strip():
        raise RecipeError.one(NO_PROMPT)
    templates.check(prompt, known_names(info))
    return prompt


class RecipeBody(Part):
    """A recipe. Give a prompt, columns, or both; the order of columns counts."""

    NOT_AN_OBJECT = "A recipe must be a JSON object."

    system: Annotated[
        StrictStr,
        Says("The system prompt must be a string."),
        AfterValidator(_check_system),
        BeforeValidator(lambda text: "" if text is None else text),
    ] = ""
    attributes: Annotated[
        dict[str, AttributeColumn],
        BeforeValidator(_as_columns),
        WithJsonSchema(TypeAdapter(dict[str, list[str | int | float]]).json_schema()),
    ] = Field(default_factory=dict)
    """Category columns in the short form: name to values."""
    columns: Annotated[
        list[AnyColumn], BeforeValidator(_check_list), AfterValidator(_check_number_of_columns)
    ] = Field(default_factory=list)
    row_schema: Annotated[dict[str, Any] | None, BeforeValidator(_check_schema)] = Field(
        None, alias="schema"
    )
    """A JSON schema for the answer to `prompt`. Default: plain text."""
    prompt: Annotated[str | None, BeforeValidator(_check_prompt)] = Field(
        None, validate_default=True
    )
    checks: Checks = ()
    candidates: Candidates = 1
    quotas: Quotas = Field(default_factory=dict)
    """Column to value to rows."""
    params: ColumnParams = Field(default_factory=SamplingParams)

    def to_recipe(self, context: ParseContext) -> Recipe:
        """
        Raises:
            RecipeError: the recipe's own answer does not fit its columns.
        """
        if self.prompt is not None:
            self._add_answer(context, self.prompt)
        columns = [
            column.model_copy(update={"quotas": self._quotas_of(column.name)})
            if isinstance(column, Choice)
            else column
            for column in context.columns
        ]
        return Recipe(tuple(columns), self.system, self.params.with_defaults())

    def _add_answer(self, context: ParseContext, prompt: str) -> None:
        answer = Answer.model_construct(
            name="",
            prompt=prompt,
            row_schema=self.row_schema,
            checks=self.checks,
            candidates=self.candidates,
        )
        try:
            context.add(answer)
        except RecipeError as error:
            place = "schema" if self.row_schema else "prompt"
            raise RecipeError(
                [problem if problem.place else problem.at(place) for problem in error.problems]
            ) from error

    def _quotas_of(self, name: str) -> dict[str, int]:
        """A value that is to come in no row keeps its 0: it would share in rows added later."""
        quotas = self.quotas.get(name, {})
        return quotas if any(quotas.values()) else {}


RecipeJson = Annotated[dict[str, Any], DocumentedAs(RecipeBody)]
"""A recipe as JSON; `parse` reads it."""
