"""What comes out of a job as files, and the card that goes with them."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from enum import StrEnum
from typing import Any

from apps.batch.models import Item, ItemStatus
from apps.batch.services import progress, tells_cached
from apps.files import csv_header, spreadsheet_safe
from apps.generation.models import Job
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.review.reasons import label_of
from apps.generation.rows.conversations import Sides, conversation
from apps.generation.rows.first_request import row_values
from apps.generation.rows.handler import draw_of, replies_of
from apps.generation.rows.steps import rebuilt
from apps.runtime.async_db import in_db

EXPORT_ROWS = 500
_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?", re.ASCII)


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    CHAT = "chat"

    @property
    def content_type(self) -> str:
        match self:
            case Format.CSV:
                return "text/csv; charset=utf-8"
            case Format.PARQUET:
                return "application/vnd.apache.parquet"
        return "application/jsonl"

    @property
    def suffix(self) -> str:
        return "-chat.jsonl" if self is Format.CHAT else f".{self.value}"


def full_row(spec: Spec, item: Item) -> dict[str, Any]:
    """All fields of a row, as a person left them, in order; of one that is not finished, those
    there are."""
    recipe, output = spec.recipe, item.current_output
    fields = output if isinstance(output, dict) else {"text": output}
    missing = set(recipe.field_names) - fields.keys()
    if not missing:
        return fields
    # Rows made before all values were kept with them: as their prompts were drawn and answered.
    draw = draw_of(item.index, item.input, spec, {})
    if recipe.is_plain:
        known = row_values(recipe, draw.index, draw.seed, draw.stands_for)
        return {**fields, **{name: value for name, value in known.items() if name in missing}}
    row, _ = rebuilt(recipe, draw, replies_of(recipe, item.prompt, item.raw))
    known = {**(row.output or {}), **fields}
    return {name: known[name] for name in recipe.field_names if name in known}


def is_whole(spec: Spec, item: Item) -> bool:
    """Whether a row has all the fields that it must have."""
    row, recipe = full_row(spec, item), spec.recipe
    optional: set[str] = set()
    if recipe.is_plain and (schema := recipe.schema) is not None:
        optional = schema["properties"].keys() - set(schema.get("required", ()))
    return all(name in row or name in optional for name in recipe.field_names)


async def export(
    job: Job, chosen: Format, sides: Sides | None = None, *, numbered: bool = False
) -> AsyncIterator[bytes]:
    """The accepted rows as a file, in order, read in pieces: a job of any size takes no memory.

    JSONL holds them exactly; CSV is for spreadsheets, so a text that would be a formula gets an
    apostrophe in front; in Parquet a field is of the type it has in JSONL, and text where a value
    of it does not fit that (see `parquet_types`); chat is OpenAI's format for fine-tuning: of each
    row two fields, or without `sides` what was asked.
    A row that lacks a field is in no file, and a conversation with an empty side is left out.

    Args:
        numbered: with each row's number on the pages as the first field.

    Raises:
        ValueError: while Parquet was written, a row was changed so that its column's type is wrong.
    """
    spec = job.spec
    table = _WRITERS[chosen](spec, sides, _number_name(spec.recipe) if numbered else "")
    last = None
    if table.looks_first:
        last = -1
        async for items in _pieces(job, spec):
            await asyncio.to_thread(table.look, items)
            last = max([last, *(item.index for item in items)])
    yield table.begin()
    async for items in _pieces(job, spec, last):
        yield await asyncio.to_thread(table.add, items)
    yield table.end()


async def _pieces(job: Job, spec: Spec, last: int | None = None) -> AsyncIterator[list[Item]]:
    """The whole rows, up to the one with the index `last`: those that came since are left out."""
    after = -1
    while items := await in_db(accepted, job, after):
        known = [item for item in items if last is None or item.index <= last]
        yield [item for item in known if is_whole(spec, item)]
        if len(known) < len(items):
            return
        after = items[-1].index


def _number_name(recipe: Recipe) -> str:
    """How the field with a row's number is called: as no other one is."""
    name = "row"
    while name in recipe.field_names:
        name = f"{name}_number"
    return name


def accepted(job: Job, after: int) -> list[Item]:
    return list(
        Item.objects.filter(
            batch_id=job.batch_id, status=ItemStatus.ACCEPTED, code="", index__gt=after
        )
        .only("index", "input", "output", "edited", "prompt", "raw")
        .order_by("index")[:EXPORT_ROWS]
    )


def cells(spec: Spec, item: Item, names: Sequence[str]) -> list[str] | None:
    """A row's fields as texts; None while there is no answer."""
    if item.current_output is None:
        return None
    row = full_row(spec, item)
    return [to_text(row.get(name)) for name in names]


class _Lines:
    """A file of lines."""

    def __init__(self, spec: Spec, sides: Sides | None = None, number: str = "") -> None:
        self.spec = spec
        self.sides = sides
        self.number = number
        self.names = [*([number] if number else []), *spec.recipe.field_names]

    def row(self, item: Item) -> dict[str, Any]:
        fields = full_row(self.spec, item)
        return {self.number: item.index + 1, **fields} if self.number else fields

    @property
    def looks_first(self) -> bool:
        """All rows are needed before the first piece."""
        return False

    def look(self, items: Sequence[Item]) -> None:
        pass

    def begin(self) -> bytes:
        return b""

    def add(self, items: Sequence[Item]) -> bytes:
        return "".join(map(self.line, items)).encode("utf-8", "replace")

    def line(self, item: Item) -> str:
        return json.dumps(self.row(item), ensure_ascii=False) + "\n"

    def end(self) -> bytes:
        return b""


class _Csv(_Lines):
    def begin(self) -> bytes:
        # By the mark at the beginning a spreadsheet knows that this is UTF-8.
        return ("\ufeff" + csv_header(self.names)).encode()

    def line(self, item: Item) -> str:
        row = self.row(item)
        return _csv_line(_csv_cell(row.get(name)) for name in self.names)


class _Chat(_Lines):
    """One conversation a line."""

    def line(self, item: Item) -> str:
        sides = self.sides
        if sides is None:
            messages = conversation(self.spec, item)
        else:
            row = full_row(self.spec, item)
            said = (("user", row.get(sides.user)), ("assistant", row.get(sides.assistant)))
            messages = [{"role": role, "content": to_text(text)} for role, text in said]
        if not all(message["content"].strip() for message in messages):
            return ""  # a condition or a person left one side empty: nothing to learn from
        return json.dumps({"messages": messages}, ensure_ascii=False) + "\n"


class _Parquet(_Lines):
    """One row group for each piece."""

    def __init__(self, spec: Spec, sides: Sides | None = None, number: str = "") -> None:
        from apps.generation.exports.parquet_types import (
            Types,  # 40 MB: not for pages without Parquet
        )

        super().__init__(spec, sides, number)
        self._types = Types(spec.recipe, number)
        self._sink = _Sink()
        self._writer: Any = None

    @property
    def looks_first(self) -> bool:
        return not self._types.are_settled

    def look(self, items: Sequence[Item]) -> None:
        for item in items:
            self._types.look(self.row(item))

    def begin(self) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = self._types.schema()
        self._writer = pq.ParquetWriter(pa.PythonFile(self._sink, mode="w"), self._schema)
        return b""

    def add(self, items: Sequence[Item]) -> bytes:
        import pyarrow as pa

        from apps.generation.exports.parquet_types import array

        rows = [self.row(item) for item in items]
        arrays = [
            array((row.get(field.name) for row in rows), field.type) for field in self._schema
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class _Sink:
    """What Parquet is written to; the bytes are taken away as they come."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


_WRITERS: dict[Format, type[_Lines]] = {
    Format.JSONL: _Lines,
    Format.CSV: _Csv,
    Format.CHAT: _Chat,
    Format.PARQUET: _Parquet,
}


def _csv_cell(value: Any) -> str:
    """A number is one to a spreadsheet too, also below 0; a text is never a formula."""
    text = to_text(value)
    is_number = isinstance(value, int | float) or _NUMBER.fullmatch(text) is not None
    return text if is_number else spreadsheet_safe(text)


def _csv_line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()


def card(job: Job) -> dict[str, Any]:
    """The data card: what the rows are, how they were made, what was left out and why."""
    batch, spec = job.batch, job.spec
    standing = progress(batch)
    return {
        "name": job.name,
        "made": job.created.isoformat(),
        "finished": batch.finished.isoformat() if batch.finished else None,
        "origin": "synthetic: every row was generated by a language model",
        "model": batch.model,
        "server": batch.server.name if batch.server else None,
        "recipe": job.recipe,
        "recipe_version": str(job.version) if job.version else None,
        "system_message": spec.system,
        "prompts": [column.prompt for column in spec.recipe.written],
        "seed": spec.seed,
        "parameters": dict(spec.recipe.params),
        "fields": spec.recipe.field_names,
        "counts": standing.counts,
        "rows_asked_for": batch.wanted,
        "rows_made": batch.total,
        "left_out": [
            {"status": status, "code": code, "reason": label_of(code), "rows": rows}
            for status, code, rows in standing.reasons
        ],
        "filters": {
            "near_duplicates": spec.filters.near,
            "near_duplicates_by_meaning": spec.filters.meaning,
            "nothing_repeated_of": job.test_dataset or None,
            "checks": [
                {"column": column.name or "row", **check.to_json()}
                for column in spec.recipe.written
                for check in column.checks
            ],
        },
        "edited_by_hand": Item.objects.filter(batch=batch, edited__isnull=False).count(),
        "tokens": {
            "prompt": batch.prompt_tokens,
            "cached": batch.cached_tokens if tells_cached(batch) else None,
            "written": batch.completion_tokens,
        },
        "caution": "Models trained on synthetic text do worse on subjective tasks "
        "(Li et al. 2023, arXiv 2310.07849): test on real data.",
    }
