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
        """One request a row and nothing but categories: the answer comes first in the row."""
        *others, last = self.columns
        return isinstance(last, Answer) and all(isinstance(other, Choice) for other in others)

    @property
    def is_conversation(self) -> bool:
        """More than one request a row."""
        return len(self.written) > 1

    @property
    def field_names(self) -> list[str]:
        """What a finished row has. Of a plain recipe the answer comes first, as it always did."""
        columns = (self.columns[-1], *self.columns[:-1]) if self.is_plain else self.columns
        return list(dict.fromkeys(name for column in columns for name in column.fields))

    @property
    def shown_first(self) -> list[str]:
        """The fields, those first that the model wrote: the narrow page of a table shows them."""
        by_model = [name for column in self.written for name in column.fields]
        return list(dict.fromkeys([*by_model, *self.field_names]))

    @property
    def label_names(self) -> list[str]:
        """The fields, those first that fit a label: few values, all known."""
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
        """What was given for a column, `thinking` included; without what is to be left out."""
        both = {**self.params, **column.own_params}
        return {name: value for name, value in both.items() if value is not None}

    def max_tokens_of(self, column: Written) -> int:
        return int(self.params_of(column)["max_tokens"])

    @property
    def max_tokens(self) -> int:
        """The most a row may write, all its requests together."""
        return sum(self.max_tokens_of(column) for column in self.written)

    def sampling_of(self, column: Written) -> dict[str, Any]:
        """The parameters that a column's request carries as they were given."""
        given = self.params_of(column)
        return {name: value for name, value in given.items() if name not in CONVERTED}

    @property
    def system_message(self) -> str:
        """The message every row begins with: a server does not tell the model its grammar.

        Of several columns the first one's fields stand here, where the server reads them once;
        those of later ones stand at the end of their own question.
        """
        fields = fields_in_words(self.written[0]) if self.written else ""
        return "\n\n".join(part for part in (self.system, fields) if part)

    @property
    def response_format(self) -> dict[str, Any] | None:
        """What makes the server enforce the first column's schema."""
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
    """What makes the server enforce a column's schema."""
    asked = column.request_schema
    if asked is None:
        return None
    return {
        "type": "json_schema",
        "json_schema": {"name": "row", "schema": schemas.closed(asked), "strict": True},
    }
