"""The column of real rows that a recipe builds on (pure)."""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, SkipValidation, StrictInt, StrictStr, model_validator

from apps.generation.recipe.columns import seed_rows
from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.seed_rows import Format, Table
from apps.generation.recipe.fields import EarlierName, Says, String
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.prompts.names import check_name

MAX_EXAMPLES = 50
MAX_KEY = 2**62
DATASET_FIELDS = ("text", "label")


def _check_fields(names: list[str]) -> list[str]:
    for name in names:
        check_name(name)
    return names


NO_FIELDS = "Must be a list of names."
Key = Annotated[
    Annotated[StrictInt, Ge(1), Le(MAX_KEY)] | None,
    Says(f"Must be an integer from 1 to {MAX_KEY:,}.", null=True),
]
FieldNames = Annotated[
    Annotated[list[StrictStr], Field(min_length=1)] | None,
    Says(NO_FIELDS, null=True),
    AfterValidator(lambda names: names and _check_fields(names)),
]


class Seed(Column):
    """Rows of real data: one, whose fields later templates may use, or several as examples.

    The rows of a job are stored beside its recipe, see `seed_rows.Table`.
    """

    kind: Literal["seed"]
    dataset: Key = None
    """The rows of a dataset, except its test rows."""
    rows: SkipValidation[list[dict[str, Any] | str] | None] = None
    text: SkipValidation[str] = ""
    """Rows as pasted, in `format`."""
    text_format: SkipValidation[Format] = Field("lines", alias="format")
    given_fields: FieldNames = Field(None, alias="fields")
    """Default: those of the rows."""
    stored: Key = None
    """The rows that were stored for a job."""
    order: Annotated[
        Literal["sample", "walk"], Says("Must be `sample` (random) or `walk` (in order).")
    ] = "sample"
    count: Annotated[
        Annotated[StrictInt, Ge(1), Le(MAX_EXAMPLES)],
        Says(f"Must be an integer from 1 to {MAX_EXAMPLES}."),
    ] = 1
    match: EarlierName = ""
    """Use only rows whose `match_field` equals this column's value."""
    given_match_field: String = Field("", alias="match_field")
    """Default: label."""
    template: String = ""
    """How a row is written where it serves as an example."""

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        names = self.row_fields
        if self.template.strip():
            try:
                templates.check(self.template.strip(), names)
            except RecipeError as error:
                raise RecipeError([problem.at("template") for problem in error.problems]) from error
        if self.match and self.match_field not in names:
            raise RecipeError([Problem((), f"Its rows have no field “{self.match_field}”.")])
        return self

    @cached_property
    def table(self) -> Table:
        """The rows that the recipe itself holds.

        Raises:
            RecipeError: they cannot be read.
        """
        if "rows" in self.model_fields_set:
            return seed_rows.table_of(self.rows)
        return seed_rows.read_text(self.text, self.text_format)

    @cached_property
    def row_fields(self) -> tuple[str, ...]:
        if self.given_fields is not None:
            return tuple(self.given_fields)
        if self.dataset is not None:
            return DATASET_FIELDS
        if self.model_fields_set & {"rows", "text"}:
            return seed_rows.field_names(self.table)
        raise RecipeError.one(seed_rows.NO_SOURCE)

    @property
    def match_field(self) -> str:
        return self.given_match_field or "label"

    @property
    def example_template(self) -> str:
        return self.template.strip()

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

    def with_stored_rows(self, key: int) -> "Seed":
        """The same column for a job: its rows are stored, so the recipe does not hold them."""
        given = {
            name: getattr(self, name)
            for name in self.model_fields_set - {"rows", "text", "text_format"}
        }
        given |= {"stored": key, "given_fields": list(self.row_fields)}
        return Seed.model_construct(**given)
