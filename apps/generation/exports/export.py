"""The accepted rows of a job as a file."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from apps.batch.models import Item
from apps.files.writers import CsvWriter, JsonlWriter, ParquetWriter, TableWriter
from apps.generation.exports.formats import Format
from apps.generation.exports.row_fields import PIECE_ROWS, accepted_rows, full_row, is_complete
from apps.generation.models import Job
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.rows.conversations import Sides, conversation
from apps.runtime.async_db import in_db

Record = Mapping[str, Any]
ToRecord = Callable[[Item], Record | None]
"""The record of a row; None for a row that is not in the file."""
Pieces = Callable[[int | None], AsyncIterator[list[Item]]]
"""Accepted rows in order, some at a time, up to the one with this index."""


async def export(
    job: Job,
    chosen: Format,
    sides: Sides | None = None,
    *,
    numbered: bool = False,
    indices: Collection[int] | None = None,
    piece_rows: int = PIECE_ROWS,
) -> AsyncIterator[bytes]:
    """Yields the accepted rows as a file, in order, in pieces: memory does not grow with the job.

    JSONL holds the rows exactly. In CSV a text that would be a formula gets an apostrophe. In
    Parquet a field has its type in the recipe, or text where a value does not fit (see
    `parquet_types`). Chat has two fields of each row, or without `sides` the conversation.
    Incomplete rows, and conversations with an empty side, are left out.

    Args:
        numbered: with each row's number on the pages as the first field.
        indices: of the only rows that are wanted; None: all.

    Raises:
        ValueError: a row was edited during a Parquet export and no longer fits its column's type.
    """
    pieces = partial(_pieces, job, job.spec, piece_rows, indices)
    number = _number_name(job.spec.recipe) if numbered else ""
    plan = await _plan(job.spec, chosen, sides, number, pieces)
    yield plan.writer.header()
    async for items in pieces(plan.last):
        yield await asyncio.to_thread(_encode, plan.writer, plan.to_record, items)
    yield plan.writer.footer()


class _Plan(NamedTuple):
    """How the rows become a file."""

    writer: TableWriter
    to_record: ToRecord
    last: int | None = None
    """Index of the last row in the file, if it cannot have later ones."""


async def _plan(
    spec: Spec, chosen: Format, sides: Sides | None, number: str, pieces: Pieces
) -> _Plan:
    match chosen:
        case Format.CSV:
            names = [*([number] if number else []), *spec.recipe.field_names]
            return _Plan(CsvWriter(names, plain_numbers=True), partial(_csv_record, spec, number))
        case Format.PARQUET:
            last, writer = await _parquet_writer(spec, number, pieces)
            return _Plan(writer, partial(_record, spec, number), last)
        case Format.CHAT:
            return _Plan(JsonlWriter(), partial(_chat_record, spec, sides))
        case Format.JSONL:
            return _Plan(JsonlWriter(), partial(_record, spec, number))


def _encode(writer: TableWriter, to_record: ToRecord, items: Iterable[Item]) -> bytes:
    records = map(to_record, items)
    return writer.encode([record for record in records if record is not None])


async def _pieces(
    job: Job, spec: Spec, piece_rows: int, indices: Collection[int] | None, last: int | None
) -> AsyncIterator[list[Item]]:
    """Complete rows up to the one with the index `last`: later ones are left out."""
    after = -1
    while items := await in_db(accepted_rows, job, after, piece_rows, indices):
        known = [item for item in items if last is None or item.index <= last]
        yield [item for item in known if is_complete(spec, item)]
        if len(known) < len(items):
            return
        after = items[-1].index


async def _parquet_writer(
    spec: Spec, number: str, pieces: Pieces
) -> tuple[int | None, TableWriter]:
    """The index of the last row that was read for the types, and the writer."""
    from apps.generation.exports.parquet_types import (  # 40 MB: only where Parquet is written
        ColumnTypes,
        to_array,
    )

    types = ColumnTypes(spec.recipe, number)
    last = None
    if not types.are_final:
        last = -1
        async for items in pieces(None):
            for item in items:
                types.narrow(_record(spec, number, item))
            last = max([last, *(item.index for item in items)])
    return last, ParquetWriter(schema=types.schema(), column=to_array)


# --- Records ------------------------------------------------------------------


def _number_name(recipe: Recipe) -> str:
    """A name for the field with a row's number that no other field has."""
    name = "row"
    while name in recipe.field_names:
        name = f"{name}_number"
    return name


def _record(spec: Spec, number: str, item: Item) -> dict[str, Any]:
    fields = full_row(spec, item)
    return {number: item.index + 1, **fields} if number else fields


def _csv_record(spec: Spec, number: str, item: Item) -> dict[str, Any]:
    """Numbers stay numbers, also below 0; all else is text."""
    return {
        name: value
        if isinstance(value, int | float) and not isinstance(value, bool)
        else to_text(value)
        for name, value in _record(spec, number, item).items()
    }


def _chat_record(spec: Spec, sides: Sides | None, item: Item) -> dict[str, Any] | None:
    """None where a condition or an edit left one side empty: nothing to learn from."""
    if sides is None:
        messages = conversation(spec, item)
    else:
        row = full_row(spec, item)
        texts = {"user": row.get(sides.user), "assistant": row.get(sides.assistant)}
        messages = [{"role": role, "content": to_text(text)} for role, text in texts.items()]
    if not all(message["content"].strip() for message in messages):
        return None
    return {"messages": messages}
