"""The recipe of a job: its columns, in order, and what every request shares (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.written import Answer, Structured, Written
from apps.generation.recipe.params import CONVERTED, DEFAULT_PARAMS, Params

MAX_ROWS = 100_000
MAX_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Recipe:
    columns: tuple[Column, ...]
    system: str = ""
    params: Params = field(default_factory=lambda: DEFAULT_PARAMS)

    @property
    def written(self) -> tuple[Written, ...]:
        """The columns that ask the model, in the order in which they do."""
        return tuple(column for column in self.columns if isinstance(column, Written))

    @property
    def categories(self) -> tuple[Choice, ...]:
        return tuple(column for column in self.columns if isinstance(column, Choice))

    @property
    def seeds(self) -> tuple[Seed, ...]:
        return tuple(column for column in self.columns if isinstance(column, Seed))

    @property
    def is_plain(self) -> bool:
        """True for one request per row and only categories: the answer is first in the row."""
        *others, last = self.columns
        return isinstance(last, Answer) and all(isinstance(other, Choice) for other in others)

    @property
    def is_conversation(self) -> bool:
        """True for more than one request per row."""
        return len(self.written) > 1

    @property
    def field_names(self) -> list[str]:
        """The fields of a finished row, in order; those of a plain recipe begin with the answer."""
        columns = (self.columns[-1], *self.columns[:-1]) if self.is_plain else self.columns
        return list(dict.fromkeys(name for column in columns for name in column.fields))

    @property
    def table_fields(self) -> list[str]:
        """The fields in the order of tables: those that the model wrote first."""
        by_model = [name for column in self.written for name in column.fields]
        return list(dict.fromkeys([*by_model, *self.field_names]))

    @property
    def label_candidates(self) -> list[str]:
        """The fields, the likely labels first: few values, all known."""
        known = [
            name
            for column in self.written
            if isinstance(column, Answer | Structured) and column.row_schema is not None
            for name, inner in column.row_schema["properties"].items()
            if "enum" in inner
        ]
        known += [column.name for column in self.categories]
        fields = self.field_names
        return list(dict.fromkeys([*(name for name in known if name in fields), *fields]))

    def params_of(self, column: Written) -> dict[str, Any]:
        """The parameters of a column's request, `thinking` included; null ones are left out."""
        both = {**self.params, **column.own_params}
        return {name: value for name, value in both.items() if value is not None}

    def max_tokens_of(self, column: Written) -> int:
        return int(self.params_of(column)["max_tokens"])

    @property
    def max_tokens(self) -> int:
        """Max tokens of all requests of a row together."""
        return sum(self.max_tokens_of(column) for column in self.written)

    def sampling_of(self, column: Written) -> dict[str, Any]:
        """The parameters that a column's request carries unconverted."""
        given = self.params_of(column)
        return {name: value for name, value in given.items() if name not in CONVERTED}

    @property
    def system_message(self) -> str:
        """The first message of every row, with the fields: the model does not see the grammar.

        Only the first column's fields are here, where the server caches them; those of later ones
        are at the end of their own message.
        """
        fields = fields_in_words(self.written[0]) if self.written else ""
        return "\n\n".join(part for part in (self.system, fields) if part)

    @property
    def response_format(self) -> dict[str, Any] | None:
        """The response format of the first column, see `response_format`."""
        return response_format(self.written[0])

    @property
    def prompt(self) -> str:
        """The first column's."""
        return self.written[0].prompt

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The first column's."""
        return self.written[0].answer_schema


def fields_in_words(column: Written) -> str:
    asked = column.request_schema
    return "" if asked is None else schemas.described(asked)


def response_format(column: Written) -> dict[str, Any] | None:
    """The request's parameter by which the server enforces a column's schema."""
    asked = column.request_schema
    if asked is None:
        return None
    return {
        "type": "json_schema",
        "json_schema": {"name": "row", "schema": schemas.closed(asked), "strict": True},
    }
