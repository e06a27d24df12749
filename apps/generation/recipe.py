"""What one job makes, and of each row exactly what the model is asked (pure).

The same recipe, seed and index give the same request, byte for byte. What every row shares is the
system message, which comes first, so that the server reads it once; what varies comes last.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.generation import prompts, schemas
from apps.generation.problems import Problem, RecipeError

MAX_COLUMNS = 50
MAX_VALUES = 5_000
MAX_VALUE = 2_000  # characters
MAX_SYSTEM = 50_000  # characters
MAX_ROWS = 100_000

# name: (type, smallest, largest). What a server takes besides is left to a later day.
PARAMS: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0.0, 5.0),
    "min_p": (float, 0.0, 1.0),
    "top_p": (float, 0.0, 1.0),
    "top_k": (int, 0, 10_000),
    "repeat_penalty": (float, 0.0, 5.0),
    "max_tokens": (int, 1, 32_000),
}
DEFAULT_PARAMS: dict[str, float] = {"temperature": 0.9, "min_p": 0.05, "max_tokens": 300}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of category values: each row gets one of them."""

    name: str
    values: tuple[str, ...]
    quotas: Mapping[str, int] = field(default_factory=dict)
    """How many rows get which value; the other rows share the values without one."""


@dataclass(frozen=True, slots=True)
class Recipe:
    prompt: str
    system: str = ""
    columns: tuple[Column, ...] = ()
    schema: Mapping[str, Any] | None = None
    params: Mapping[str, float] = field(default_factory=lambda: DEFAULT_PARAMS)

    @property
    def max_tokens(self) -> int:
        return int(self.params["max_tokens"])

    @property
    def sampling(self) -> dict[str, float]:
        """The parameters a request carries besides `max_tokens`."""
        return {name: value for name, value in self.params.items() if name != "max_tokens"}

    @property
    def system_message(self) -> str:
        """The message every row begins with: a server does not tell the model its grammar."""
        if self.schema is None:
            return self.system
        fields = schemas.described(self.schema)
        return f"{self.system}\n\n{fields}" if self.system else fields

    @property
    def response_format(self) -> dict[str, Any] | None:
        """What makes the server enforce the schema."""
        if self.schema is None:
            return None
        return {
            "type": "json_schema",
            "json_schema": {"name": "row", "schema": schemas.closed(self.schema), "strict": True},
        }


@dataclass(frozen=True, slots=True)
class RowPrompt:
    """One row's request. `values` are the row's columns."""

    messages: tuple[dict[str, str], ...]
    values: dict[str, str]
    seed: int


def render_row(recipe: Recipe, index: int, seed: int) -> RowPrompt:
    """What row `index` asks the model.

    Raises:
        RecipeError: the prompt came out too long or empty.
    """
    values = row_values(recipe, index, seed)
    question = prompts.render(recipe.prompt, values)
    system = recipe.system_message
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": question})
    return RowPrompt(tuple(messages), values, _number(seed, index, " request") % 2**31)


def row_values(recipe: Recipe, index: int, seed: int) -> dict[str, str]:
    """The columns of row `index`."""
    return {column.name: _value(column, index, seed) for column in recipe.columns}


def _value(column: Column, index: int, seed: int) -> str:
    order = _quota_order(column, seed)
    if index < len(order):
        return order[index]
    free = [value for value in column.values if value not in column.quotas]
    if not free:  # rows beyond the quotas keep their proportions
        return order[index % len(order)]
    return free[_number(seed, index, column.name) % len(free)]


def _quota_order(column: Column, seed: int) -> tuple[str, ...]:
    """The values with a quota, each as often as it says, shuffled by the seed."""
    if not column.quotas:
        return ()
    key = (column.name, tuple(column.quotas.items()), seed)
    if key not in _orders:
        if len(_orders) > 64:
            _orders.clear()
        slots = [value for value, count in column.quotas.items() for _ in range(count)]
        places = sorted(range(len(slots)), key=lambda at: _number(seed, at, f"{column.name} order"))
        _orders[key] = tuple(slots[at] for at in places)
    return _orders[key]


_orders: dict[tuple[str, tuple[tuple[str, int], ...], int], tuple[str, ...]] = {}


def _number(seed: int, index: int, what: str) -> int:
    """A random number that is the same on every machine and in every version of Python."""
    key = f"{seed}\x1f{index}\x1f{what}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


# --- Reading ------------------------------------------------------------------


def parse(data: Mapping[str, Any], *, rows: int | None = None) -> Recipe:
    """The recipe in the API's words, checked in every part.

    Args:
        rows: how many rows the job has, to hold the quotas against.

    Raises:
        RecipeError: with everything that is wrong, each with its place.
    """
    problems: list[Problem] = []

    def part(place: str, read: Any, *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except RecipeError as error:
            problems.extend(problem.at(place) for problem in error.problems)
            return None

    for unknown in data.keys() - {
        *("system", "prompt", "schema", "attributes", "columns", "quotas", "params")
    }:
        problems.append(Problem((str(unknown),), "A recipe has no such part."))
    columns = part("", _columns, data, rows) or ()
    recipe = Recipe(
        prompt=part("prompt", _prompt, data.get("prompt"), columns, not problems) or "",
        system=part("system", _system, data.get("system")) or "",
        columns=columns,
        schema=part("schema", schemas.checked, data["schema"]) if data.get("schema") else None,
        params=part("params", _params, data.get("params")) or DEFAULT_PARAMS,
    )
    if problems:
        raise RecipeError(problems)
    return recipe


def as_dict(recipe: Recipe) -> dict[str, Any]:
    """The recipe as it is stored, and as `parse` reads it."""
    quotas = {column.name: dict(column.quotas) for column in recipe.columns if column.quotas}
    return {
        "system": recipe.system,
        "prompt": recipe.prompt,
        "attributes": {column.name: list(column.values) for column in recipe.columns},
        **({"quotas": quotas} if quotas else {}),
        **({"schema": recipe.schema} if recipe.schema is not None else {}),
        "params": dict(recipe.params),
    }


def _prompt(source: Any, columns: Sequence[Column], columns_are_known: bool) -> str:
    if not isinstance(source, str) or not source.strip():
        raise RecipeError.of("Write the prompt: what shall the model write for each row?")
    prompts.check(source, [column.name for column in columns] if columns_are_known else None)
    return source


def _system(text: Any) -> str:
    if text is None:
        return ""
    if not isinstance(text, str):
        raise RecipeError.of("The system prompt must be a text.")
    if len(text) > MAX_SYSTEM:
        raise RecipeError.of(f"At most {MAX_SYSTEM:,} characters; these are {len(text):,}.")
    if "{{" in text:
        raise RecipeError.of(
            "The system prompt is the same for every row, so that the server reads it once. "
            "Put {{ columns }} into the prompt."
        )
    return text.strip()


def _columns(data: Mapping[str, Any], rows: int | None) -> tuple[Column, ...]:
    problems: list[Problem] = []
    found: dict[str, tuple[str, ...]] = {}
    for place, name, values in _listed(data, problems):
        try:
            if name in found:
                raise RecipeError.of(f"There are two columns named “{name}”.")
            prompts.check_name(name)
            found[name] = _values(name, values)
        except RecipeError as error:
            problems.extend(problem.at(*place) for problem in error.problems)
    if len(found) > MAX_COLUMNS:
        problems.append(Problem(("attributes",), f"At most {MAX_COLUMNS} columns."))
    quotas = _quotas(data.get("quotas"), found, rows, problems)
    if problems:
        raise RecipeError(problems)
    return tuple(Column(name, values, quotas.get(name, {})) for name, values in found.items())


def _listed(
    data: Mapping[str, Any], problems: list[Problem]
) -> list[tuple[tuple[str | int, ...], str, Any]]:
    """(place, name, values) of each column, of the short form and then of the long one."""
    listed: list[tuple[tuple[str | int, ...], str, Any]] = []
    attributes = data.get("attributes") or {}
    if isinstance(attributes, Mapping):
        listed += [(("attributes", str(name)), str(name), attributes[name]) for name in attributes]
    else:
        problems.append(Problem(("attributes",), "Attributes are an object: name to values."))
    columns = data.get("columns") or []
    if not isinstance(columns, list):
        problems.append(Problem(("columns",), "Columns are a list."))
        return listed
    for at, column in enumerate(columns):
        if not isinstance(column, Mapping) or not isinstance(column.get("name"), str):
            problems.append(Problem(("columns", at), "A column has a name, a kind and values."))
        elif column.get("kind", "category") != "category":
            message = f"There is no kind “{column['kind']}” of column yet: use “category”."
            problems.append(Problem(("columns", at, "kind"), message))
        else:
            listed.append((("columns", at), column["name"], column.get("values")))
    return listed


def _values(name: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        raise RecipeError.of(f"“{name}” needs at least one value.")
    if len(values) > MAX_VALUES:
        raise RecipeError.of(f"“{name}” has {len(values):,} values; at most {MAX_VALUES:,}.")
    texts = []
    for value in values:
        if not isinstance(value, str | int | float) or not str(value).strip():
            raise RecipeError.of(f"A value of “{name}” is empty or no text.")
        if len(str(value)) > MAX_VALUE:
            raise RecipeError.of(f"A value of “{name}” is longer than {MAX_VALUE:,} characters.")
        texts.append(str(value).strip())
    return tuple(dict.fromkeys(texts))


def _quotas(
    data: Any,
    columns: Mapping[str, tuple[str, ...]],
    rows: int | None,
    problems: list[Problem],
) -> dict[str, dict[str, int]]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        problems.append(Problem(("quotas",), "Quotas are an object: column to value to rows."))
        return {}
    quotas: dict[str, dict[str, int]] = {}
    for name, wanted in data.items():
        problem = _quota_problem(str(name), wanted, columns, rows)
        if problem:
            problems.append(Problem(("quotas", str(name)), problem))
        else:
            quotas[name] = {value: count for value, count in wanted.items() if count}
    return quotas


def _quota_problem(
    name: str, wanted: Any, columns: Mapping[str, tuple[str, ...]], rows: int | None
) -> str:
    if name not in columns:
        return f"There is no column “{name}”."
    if not isinstance(wanted, Mapping) or not all(
        isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_ROWS
        for count in wanted.values()
    ):
        return f"The quotas of “{name}” are an object: value to a number of rows."
    for value in wanted:
        if value not in columns[name]:
            return f"“{value}” is no value of “{name}”."
    total = sum(wanted.values())
    if rows is not None and total > rows:
        return f"The quotas of “{name}” add up to {total:,} rows, the job has {rows:,}."
    if rows is not None and total < rows and len(wanted) == len(columns[name]):
        return (
            f"The quotas of “{name}” add up to {total:,} rows, the job has {rows:,}: "
            "every value has a quota, so they must be equal."
        )
    return ""


def _params(data: Any) -> dict[str, float]:
    if data is None:
        return dict(DEFAULT_PARAMS)
    if not isinstance(data, Mapping):
        raise RecipeError.of("Parameters are an object, such as temperature and max_tokens.")
    problems: list[Problem] = []
    params: dict[str, float] = dict(DEFAULT_PARAMS)
    for name, value in data.items():
        if name not in PARAMS:
            known = ", ".join(PARAMS)
            problems.append(Problem((str(name),), f"There is no such parameter. Use {known}."))
            continue
        kind, smallest, largest = PARAMS[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or (kind is int and not whole) or not smallest <= value <= largest:
            noun = "a whole number" if kind is int else "a number"
            problems.append(
                Problem((str(name),), f"Must be {noun} from {smallest:g} to {largest:g}.")
            )
        else:
            params[name] = value
    if problems:
        raise RecipeError(problems)
    return params


def dumps(value: Any) -> str:
    """JSON with the text as it is written."""
    return json.dumps(value, ensure_ascii=False)
