"""Recipes in the API's words: read, checked in every part, and written down again (pure).

The short form (`prompt`, `schema`, `attributes`) and the long one (`columns`) are the same thing:
attributes are category columns, the prompt is the last column, whose fields are the row. The same
recipe, seed and index give the same first request, byte for byte.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from apps.generation.recipe import params as sampling
from apps.generation.recipe.columns import parse_column, schemas
from apps.generation.recipe.columns import written as columns_written
from apps.generation.recipe.columns.columns import (
    Answer,
    Category,
    Column,
    Seed,
    Structured,
    Text,
    Written,
)
from apps.generation.recipe.contradictions import contradictions
from apps.generation.recipe.params import DEFAULT_PARAMS
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.recipe import MAX_ROWS, Recipe
from apps.generation.rows import samplers
from apps.generation.rows.samplers import Draw
from apps.generation.rows.steps import first_ask

__all__ = ["DEFAULT_PARAMS", "MAX_ROWS", "Recipe", "as_dict", "parse", "render_row"]

MAX_COLUMNS = 50
MAX_WRITTEN = 10
MAX_SYSTEM = 50_000  # characters
PARTS = (
    *("system", "prompt", "schema", "attributes", "columns", "quotas", "params"),
    *("checks", "candidates"),
)


@dataclass
class _Reading:
    """What is known so far while the columns are read in order."""

    problems: list[Problem] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    attributes: frozenset[str] = frozenset()
    """The names of columns that were given in the short form, which come first."""
    complete: bool = True
    """Whether every column so far was read: else a name may be missing for another mistake."""

    def names(self) -> list[str] | None:
        if not self.complete:
            return None
        return list(dict.fromkeys(name for column in self.columns for name in column.names))

    def part(self, place: Sequence[str | int], read: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except RecipeError as error:
            self.problems.extend(problem.at(*place) for problem in error.problems)
            return None

    def add(self, place: Sequence[str | int], column: Column | None) -> None:
        if column is None:
            self.complete = False
            return
        taken = {name: known for known in self.columns for name in known.names}
        for name in column.names:
            # What the model was asked for may come back in its answer: the label, for instance.
            told_back = isinstance(column, Structured | Answer) and isinstance(
                taken.get(name), Category
            )
            if name in taken and not told_back:
                message = f"Two columns are named “{name}”. Rename one."
                if name != column.name:
                    message = f"Its “{name}” is the name of an earlier column: rename one of them."
                self.problems.append(Problem(tuple(place), message))
                return
        self.columns.append(column)


def parse(data: Mapping[str, Any], *, rows: int | None = None, sense: bool = True) -> Recipe:
    """The recipe in the API's words, checked in every part.

    Args:
        rows: how many rows the job has, to hold the quotas against.
        sense: also refuse what contradicts itself; a stored recipe is read whatever it says.

    Raises:
        RecipeError: with everything that is wrong, each with its place.
    """
    reading = _Reading()
    for unknown in data.keys() - set(PARTS):
        reading.problems.append(Problem((str(unknown),), "Unknown recipe key."))
    _read_columns(reading, data)
    _read_answer(reading, data)
    _set_quotas(reading, data.get("quotas"), rows)
    _check_matches(reading)
    if sense and reading.complete:
        reading.problems.extend(_contradictions(reading))
    system = reading.part(("system",), _system, data.get("system")) or ""
    params = reading.part(("params",), sampling.read, data.get("params")) or {}
    if reading.problems:
        raise RecipeError(reading.problems)
    return Recipe(tuple(reading.columns), system, _with_defaults(params))


def _contradictions(reading: _Reading) -> Iterator[Problem]:
    """At the columns' places in what was given: attributes stand before them."""
    before = sum(1 for column in reading.columns if column.name in reading.attributes)
    for problem in contradictions(reading.columns):
        if problem.place[0] == "columns":
            at = int(problem.place[1]) - before
            yield Problem(("columns", at, *problem.place[2:]), problem.message)
        else:
            yield problem


def _with_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """A null stays where it takes a default away."""
    given = {
        name: value for name, value in params.items() if value is not None or name in DEFAULT_PARAMS
    }
    return {**DEFAULT_PARAMS, **given}


def _read_columns(reading: _Reading, data: Mapping[str, Any]) -> None:
    for place, given in _listed(reading, data):
        column = reading.part(place, parse_column.read, given, reading.names())
        reading.add(place, column)
    if len(reading.columns) > MAX_COLUMNS:
        reading.problems.append(Problem(("columns",), f"Up to {MAX_COLUMNS} columns are allowed."))


def _listed(
    reading: _Reading, data: Mapping[str, Any]
) -> list[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Each column with its place, of the short form and then of the long one."""
    listed: list[tuple[tuple[str | int, ...], Mapping[str, Any]]] = []
    attributes = data.get("attributes") or {}
    if isinstance(attributes, Mapping):
        reading.attributes = frozenset(map(str, attributes))
        for name, values in attributes.items():
            column = {"name": str(name), "kind": "category", "values": values}
            listed.append((("attributes", str(name)), column))
    else:
        reading.problems.append(
            Problem(("attributes",), "Attributes are an object: name to values.")
        )
    columns = data.get("columns") or []
    if not isinstance(columns, list):
        reading.problems.append(Problem(("columns",), "Columns must be a list."))
        return listed
    for at, column in enumerate(columns):
        if isinstance(column, Mapping):
            listed.append((("columns", at), column))
        else:
            message = "A column is an object with a name, a kind and what the kind needs."
            reading.problems.append(Problem(("columns", at), message))
            reading.complete = False
    return listed


def _read_answer(reading: _Reading, data: Mapping[str, Any]) -> None:
    """The recipe's own prompt, as the last column."""
    written = [column for column in reading.columns if isinstance(column, Written)]
    if len(written) > MAX_WRITTEN:
        message = f"Up to {MAX_WRITTEN} columns can be written by the model."
        reading.problems.append(Problem(("columns",), message))
    prompt = data.get("prompt")
    if not prompt and (written or not reading.complete) and not data.get("schema"):
        return
    answer = Answer(
        name="",
        prompt=reading.part(("prompt",), columns_written.prompt, prompt, reading.names()) or "",
        row_schema=(
            reading.part(("schema",), schemas.checked, data["schema"])
            if data.get("schema")
            else None
        ),
        checks=reading.part(("checks",), columns_written.checks_of, data) or (),
        candidates=reading.part(("candidates",), columns_written.candidates_of, data) or 1,
    )
    if data.get("schema") and answer.row_schema is None:
        return  # its names are not known: said already
    reading.add(("schema",) if answer.row_schema else ("prompt",), answer)
    reading.part(("checks",), columns_written.check_fields, answer, reading.names())


def _check_matches(reading: _Reading) -> None:
    """The fields that checks and seed rows name are there."""
    for at, column in enumerate(reading.columns):
        if (
            isinstance(column, Seed)
            and column.match
            and column.match_field not in (column.row_fields)
        ):
            message = f"Its rows have no field “{column.match_field}”."
            reading.problems.append(Problem(("columns", at), message))
        if isinstance(column, Text | Structured):
            before = [name for known in reading.columns[: at + 1] for name in known.names]
            reading.part(("columns", at), columns_written.check_fields, column, before)


def _system(text: Any) -> str:
    if text is None:
        return ""
    if not isinstance(text, str):
        raise RecipeError.of("The system prompt must be a string.")
    if len(text) > MAX_SYSTEM:
        raise RecipeError.of(f"Too long: {len(text):,} characters. The limit is {MAX_SYSTEM:,}.")
    if "{{" in text:
        raise RecipeError.of(
            "The system prompt is the same for every row, so that the server reads it once. "
            "Put {{ columns }} into the prompt."
        )
    return text.strip()


# --- Quotas -------------------------------------------------------------------


def _set_quotas(reading: _Reading, data: Any, rows: int | None) -> None:
    if data is None:
        return
    if not isinstance(data, Mapping):
        message = "Quotas are an object: column to value to rows."
        reading.problems.append(Problem(("quotas",), message))
        return
    places = {
        column.name: at for at, column in enumerate(reading.columns) if isinstance(column, Category)
    }
    for name, wanted in data.items():
        at = places.get(str(name))
        column = None if at is None else reading.columns[at]
        problem = _quota_problem(str(name), wanted, column, rows)
        if problem:
            reading.problems.append(Problem(("quotas", str(name)), problem))
        elif at is not None and isinstance(column, Category):
            # A value that is to come in no row keeps its 0: it would share in rows added later.
            quotas = {str(value): count for value, count in wanted.items()}
            quotas = quotas if any(quotas.values()) else {}
            reading.columns[at] = replace(column, quotas=quotas)


def _quota_problem(name: str, wanted: Any, column: Column | None, rows: int | None) -> str:
    if not isinstance(column, Category):
        return f"No category column “{name}”."
    if column.depends_on:
        return f"“{name}” depends on “{column.depends_on}”. Set the quotas there."
    if column.condition:
        return f"“{name}” has a condition, so it cannot have quotas."
    if not isinstance(wanted, Mapping) or not all(
        isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_ROWS
        for count in wanted.values()
    ):
        return f"The quotas of “{name}” are an object: value to a number of rows."
    for value in wanted:
        if value not in column.values:
            return f"“{value}” is not a value of “{name}”."
    total = sum(wanted.values())
    if rows is not None and total > rows:
        return f"The quotas of “{name}” add up to {total:,} rows, but the job has {rows:,}."
    if rows is not None and total < rows and len(wanted) == len(column.values):
        return (
            f"The quotas of “{name}” add up to {total:,} rows, the job has {rows:,}: "
            "every value has a quota, so they must be equal."
        )
    return ""


# --- Writing it down ----------------------------------------------------------


def as_dict(recipe: Recipe) -> dict[str, Any]:
    """The recipe as it is stored, and as `parse` reads it."""
    quotas = {column.name: dict(column.quotas) for column in recipe.categories if column.quotas}
    last = recipe.columns[-1]
    if isinstance(last, Answer) and recipe.is_plain and _only_attributes(recipe):
        body: dict[str, Any] = {
            "prompt": last.prompt,
            "attributes": {column.name: list(column.values) for column in recipe.categories},
        }
    elif isinstance(last, Answer):
        columns = [dict(column.source) for column in recipe.columns[:-1]]
        body = {"columns": columns, "prompt": last.prompt}
    else:
        body = {"columns": [dict(column.source) for column in recipe.columns]}
    if isinstance(last, Answer):
        body |= {
            name: value
            for name, value in (
                ("schema", last.row_schema),
                ("checks", [check.as_dict() for check in last.checks]),
                ("candidates", last.candidates if last.candidates > 1 else None),
            )
            if value
        }
    return {
        "system": recipe.system,
        **body,
        **({"quotas": quotas} if quotas else {}),
        "params": dict(recipe.params),
    }


def long_form(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe in the API's words with all it has in `columns`, as the editor shows it."""
    columns: list[dict[str, Any]] = [
        {"name": name, "kind": "category", "values": list(values)}
        for name, values in (data.get("attributes") or {}).items()
    ]
    columns += [{"kind": "category", **column} for column in data.get("columns") or []]
    if data.get("prompt"):
        written = {
            name: data[name]
            for name in ("prompt", "schema", "checks", "candidates")
            if name in data
        }
        kind = (
            {"name": "row", "kind": "structured"}
            if data.get("schema")
            else {
                "name": "text",
                "kind": "text",
            }
        )
        columns.append({**kind, **written})
    kept = {name: data[name] for name in ("system", "quotas", "params") if data.get(name)}
    return {"system": "", **kept, "columns": columns}


def _only_attributes(recipe: Recipe) -> bool:
    """Whether the short form says all there is."""
    return all(
        not (column.depends_on or column.options.weights or column.persona)
        and not column.condition
        and column.keep
        for column in recipe.categories
    )


def dumps(value: Any) -> str:
    """JSON with the text as it is written."""
    return json.dumps(value, ensure_ascii=False)


# --- One row ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowPrompt:
    """A row's first request. `values` are the row's columns as far as no model writes them."""

    messages: tuple[dict[str, str], ...]
    values: dict[str, str]
    seed: int


def render_row(recipe: Recipe, index: int, seed: int) -> RowPrompt:
    """What row `index` asks the model first, of a recipe without seed rows.

    Raises:
        RecipeError: the prompt came out too long or empty.
    """
    ask = first_ask(recipe, Draw(index, seed))
    return RowPrompt(ask.messages, row_values(recipe, index, seed), ask.seed)


def row_values(
    recipe: Recipe, index: int, seed: int, stands_for: int | None = None
) -> dict[str, Any]:
    """The category columns of row `index`, of a recipe where nothing else stands before them.

    Args:
        stands_for: as in `Draw`. A row that replaces another draws by its own index all that was
            not promised of that one.
    """
    values: dict[str, Any] = {}
    draw = Draw(index, seed, stands_for)
    for column in recipe.categories:
        if column.condition and not templates.evaluate(column.condition, values):
            values[column.name] = None
        else:
            with suppress(RecipeError):  # a row of a time when that was let pass
                values[column.name] = ""
                samplers.fill(column, draw, values)
    return values
