"""Sampled values of a row: the same for the same seed and row on every machine (pure)."""

import hashlib
import uuid
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import accumulate
from typing import Any

from apps.core.schemas.json_types import JsonValue
from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice, Options
from apps.generation.recipe.columns.sampled import Date, Expression, Number, Uuid
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.seed_rows import Row, Table
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates

Values = dict[str, JsonValue]
"""Values of a row by column or field, those that it does not keep included."""
UNITS = 2.0**64


@dataclass(frozen=True, slots=True)
class RowSeed:
    """Everything that the sampled values of a row depend on."""

    index: int
    seed: int
    replaces: int | None = None
    """Index of the row that it replaces. It takes over quota and seed row; the rest is new."""
    tables: Mapping[str, Table] = field(default_factory=dict)
    turn: int = 0
    """How often it was requeued. Each turn samples other answers."""

    @property
    def place(self) -> int:
        return self.index if self.replaces is None else self.replaces

    def random_bits(self, what: str) -> int:
        return random_bits(self.seed, self.index, what)


def random_bits(seed: int, index: int, what: str) -> int:
    """Return 64 random bits, the same on every machine and in every version of Python."""
    key = f"{seed}\x1f{index}\x1f{what}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


def sample_column(column: Column, row_seed: RowSeed, values: Values) -> None:
    """Add the values of a column to those of the row.

    Raises:
        RecipeError: an expression cannot be evaluated, or there is no seed row.
    """
    match column:
        case Choice():
            values[column.name] = _category(column, row_seed, values)
        case Number():
            values[column.name] = _number(column, row_seed)
        case Date():
            values[column.name] = _date(column, row_seed)
        case Uuid():
            bits = row_seed.random_bits(column.name) << 64 | row_seed.random_bits(
                f"{column.name} low"
            )
            values[column.name] = str(uuid.UUID(int=bits, version=4))
        case Seed():
            values.update(_seed(column, row_seed, values))
        case Expression():
            values[column.name] = templates.evaluate(column.expression, values)
        case _:
            raise TypeError(f"{type(column).__name__} is not sampled.")


def _category(column: Choice, row_seed: RowSeed, values: Mapping[str, Any]) -> str:
    order = _quota_order(column, row_seed.seed)
    if row_seed.place < len(order):
        return order[row_seed.place]
    options = column.options
    if column.depends_on:
        above = values[column.depends_on]
        if above is None or above == "":  # that column was left empty by its condition
            return ""
        options = column.branches.get(str(above), Options(()))
        if not options.values:
            raise RecipeError.one(
                f"“{column.name}” has no values for “{str(above)[:60]}” of “{column.depends_on}”."
            )
    if not column.quotas:
        return _choice(options, row_seed.random_bits(column.name))
    places = [at for at, value in enumerate(options.values) if value not in column.quotas]
    if not places:  # rows beyond the quotas keep their proportions
        return order[row_seed.place % len(order)]
    free = Options(
        tuple(options.values[at] for at in places),
        tuple(options.weights[at] for at in places) if options.weights else (),
    )
    return _choice(free, row_seed.random_bits(column.name))


def _choice(options: Options, bits: int) -> str:
    if not options.weights:
        return options.values[bits % len(options.values)]
    ends = list(accumulate(options.weights))
    at = bisect_right(ends, bits / UNITS * ends[-1])
    return options.values[min(at, len(options.values) - 1)]


def _quota_order(column: Choice, seed: int) -> tuple[str, ...]:
    """Repeat each value as often as its quota says, shuffled by the seed."""
    if not column.quotas:
        return ()
    key = (column.name, tuple(column.quotas.items()), seed)
    if key not in _orders:
        if len(_orders) > 64:
            _orders.clear()
        slots = [value for value, count in column.quotas.items() for _ in range(count)]
        places = sorted(
            range(len(slots)), key=lambda at: random_bits(seed, at, f"{column.name} order")
        )
        _orders[key] = tuple(slots[at] for at in places)
    return _orders[key]


_orders: dict[tuple[str, tuple[tuple[str, int], ...], int], tuple[str, ...]] = {}


def _number(column: Number, row_seed: RowSeed) -> int | float:
    unit = partial(_unit, row_seed, column.name)
    if (normal := column.normal) is not None:
        tries = (normal.inv_cdf(min(max(unit(turn), 1e-12), 1 - 1e-12)) for turn in range(100))
        value = next(
            (value for value in tries if column.smallest <= value <= column.largest),
            min(max(normal.mean, column.smallest), column.largest),
        )
    elif not column.decimals:
        span = int(column.largest) - int(column.smallest) + 1
        return int(column.smallest) + row_seed.random_bits(column.name) % span
    else:
        value = column.smallest + unit(0) * (column.largest - column.smallest)
    return round(value, column.decimals) if column.decimals else round(value)


def _unit(row_seed: RowSeed, name: str, turn: int) -> float:
    """Return a number from 0 to below 1."""
    return row_seed.random_bits(name if not turn else f"{name} {turn}") / UNITS


def _date(column: Date, row_seed: RowSeed) -> str:
    bits = row_seed.random_bits(column.name)
    if column.with_time:
        minutes = int((column.last - column.first) / timedelta(minutes=1)) + 1
        return (column.first + timedelta(minutes=bits % minutes)).isoformat(timespec="minutes")
    days = (column.last.date() - column.first.date()).days + 1
    return (column.first.date() + timedelta(days=bits % days)).isoformat()


def _seed(column: Seed, row_seed: RowSeed, values: Mapping[str, Any]) -> Values:
    table = row_seed.tables.get(column.name)
    if table is None:
        raise RecipeError.one(f"The seed rows of “{column.name}” no longer exist.")
    places = None
    if column.match:
        wanted = str(values[column.match])
        places = table.matching(column.match_field, wanted)
        if not places:
            raise RecipeError.one(
                f"No seed row of “{column.name}” has {column.match_field} = “{wanted}”."
            )
    if column.order == "walk":
        total = len(table.rows) if places is None else len(places)
        at = [(row_seed.place * column.count + turn) % total for turn in range(column.count)]
        rows = [table.rows[n if places is None else places[n]] for n in at]
    else:
        rows = table.pick(
            places,
            column.count,
            lambda what, of: row_seed.random_bits(f"{column.name} {what}") % of,
        )
    found: Values = {column.name: "\n".join(_format_row(column, row) for row in rows)}
    if column.count == 1:
        found |= {f"{column.name}_{part}": rows[0].get(part, "") for part in column.row_fields}
    return found


def _format_row(column: Seed, row: Row) -> str:
    """Format a seed row as an example for a prompt."""
    if column.example_template:
        return templates.render(
            column.example_template, {**dict.fromkeys(column.row_fields, ""), **row}
        )
    if len(column.row_fields) == 1:
        return row.get(column.row_fields[0], "")
    return "; ".join(f"{part}: {row.get(part, '')}" for part in column.row_fields)
