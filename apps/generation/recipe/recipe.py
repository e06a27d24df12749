"""The recipe of a job: its columns, in order, and what every request shares (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from apps.core.schemas.json_types import JsonObject
from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.judge import Judge
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.written import Answer, Structured, Written
from apps.generation.recipe.params import CONVERTED, DEFAULT_PARAMS, Params
from apps.llm.thinking import ThinkingSetting

MAX_ROWS = 100_000
MAX_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """What the requests of a written column have in common, computed once for all rows."""

    column: Written
    fields: str
    """The fields of its answer in words; empty for plain text."""
    max_tokens: int
    params: Params
    """Sampling parameters, sent as they are."""
    thinking: ThinkingSetting | None
    reasoning_effort: str
    response_format: JsonObject | None
    """Makes the server enforce the schema of the answer."""


@dataclass(frozen=True)
class Recipe:
    """Columns in order. What follows from them is computed once and kept."""

    columns: tuple[Column, ...]
    system: str = ""
    params: Params = field(default_factory=lambda: DEFAULT_PARAMS)

    @cached_property
    def written(self) -> tuple[Written, ...]:
        """The columns that ask the model, in the order in which they do."""
        return tuple(column for column in self.columns if isinstance(column, Written))

    @cached_property
    def categories(self) -> tuple[Choice, ...]:
        return tuple(column for column in self.columns if isinstance(column, Choice))

    @cached_property
    def seeds(self) -> tuple[Seed, ...]:
        return tuple(column for column in self.columns if isinstance(column, Seed))

    @cached_property
    def is_plain(self) -> bool:
        """True for one request per row and only categories: the answer is first in the row."""
        *others, last = self.columns
        return isinstance(last, Answer) and all(isinstance(other, Choice) for other in others)

    @cached_property
    def is_conversation(self) -> bool:
        """True for more than one request per row."""
        return len(self.written) > 1

    @cached_property
    def field_names(self) -> list[str]:
        """The fields of a finished row, in order; those of a plain recipe begin with the answer."""
        columns = (self.columns[-1], *self.columns[:-1]) if self.is_plain else self.columns
        return list(dict.fromkeys(name for column in columns for name in column.fields))

    @cached_property
    def text_columns(self) -> tuple[Written, ...]:
        """The written columns that the row keeps, without the scores of a judge."""
        return tuple(c for c in self.written if c.keep and not isinstance(c, Judge))

    @cached_property
    def steps(self) -> tuple[tuple[Column, ColumnRequest | None], ...]:
        """The columns in order, each with its request if the model writes it."""
        return tuple(
            (column, self._request_of(column) if isinstance(column, Written) else None)
            for column in self.columns
        )

    @cached_property
    def requests(self) -> tuple[ColumnRequest, ...]:
        """The requests of a row, in order."""
        return tuple(request for _, request in self.steps if request is not None)

    def _request_of(self, column: Written) -> ColumnRequest:
        given = self.params_of(column)
        return ColumnRequest(
            column,
            fields_in_words(column),
            given["max_tokens"],
            {name: value for name, value in given.items() if name not in CONVERTED},
            given.get("thinking"),
            given.get("reasoning_effort", ""),
            response_format(column),
        )

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
        """Merge the parameters of recipe and column; those that are null are left out."""
        both = {**self.params, **column.own_params}
        return {name: value for name, value in both.items() if value is not None}

    @property
    def max_tokens(self) -> int:
        """Max tokens of all requests of a row together."""
        return sum(request.max_tokens for request in self.requests)

    @cached_property
    def system_message(self) -> str:
        """The first message of every row, with the fields: the model does not see the grammar.

        Only the first column's fields are here, where the server caches them; those of later ones
        are at the end of their own message.
        """
        fields = self.requests[0].fields if self.requests else ""
        return "\n\n".join(part for part in (self.system, fields) if part)

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


def response_format(column: Written) -> JsonObject | None:
    """Return the request parameter that makes the server enforce a column's schema."""
    asked = column.request_schema
    if asked is None:
        return None
    return {
        "type": "json_schema",
        "json_schema": {"name": "row", "schema": schemas.closed(asked), "strict": True},
    }
