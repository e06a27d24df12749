"""Starting jobs, trying a recipe, and what comes out of a job."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.batch.handlers import Outcome
from apps.batch.models import Item, ItemStatus
from apps.batch.services import create_batch
from apps.core.db import in_db
from apps.datasets.formats import ExampleRow, spreadsheet_safe
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.generation import schemas
from apps.generation.models import Job
from apps.generation.problems import RecipeError
from apps.generation.recipe import Recipe, RowPrompt, dumps, render_row, row_values
from apps.generation.rows import HANDLER, Spec, outcome, request_for
from apps.llm.errors import LLMError
from apps.llm.models import Server
from apps.llm.services import Target, look_at
from apps.llm.slots import Lane, permit

PREVIEW_ROWS = 3
EXPORT_ROWS = 500


class NothingAccepted(Exception):
    """The job has no accepted row yet, so there is nothing to take over."""


@transaction.atomic
def create_job(
    *,
    owner: User,
    name: str,
    rows: int,
    seed: int,
    recipe: Recipe,
    server: Server,
    model: str = "",
) -> Job:
    """A queued job with its pending rows. `apps.batch.tasks.wake` sends the pump to it."""
    spec = Spec(recipe, seed, recipe.system_message)
    batch = create_batch(
        owner=owner,
        server=server,
        model=model,
        handler=HANDLER,
        spec=spec.as_dict(),
        inputs=repeat(None, rows),  # a row's input is its index: the recipe does the rest
    )
    return Job.objects.create(owner=owner, name=name, batch=batch)


# --- Trying a recipe ----------------------------------------------------------


@dataclass(frozen=True)
class Preview:
    """One row as the job would make it, or why it could not be asked for."""

    row: RowPrompt | None
    outcome: Outcome | None
    error: str = ""

    @property
    def pretty(self) -> str:
        return "" if self.outcome is None else pretty(self.outcome.output)


async def preview(
    target: Target, recipe: Recipe, seed: int, *, rows: int = PREVIEW_ROWS
) -> list[Preview]:
    """The first rows, really asked for. Somebody waits, so they go before any job's rows."""
    server = await look_at(target.server)
    chosen = Target(server, target.model)
    return list(await asyncio.gather(*(_try(chosen, recipe, seed, at) for at in range(rows))))


async def _try(target: Target, recipe: Recipe, seed: int, index: int) -> Preview:
    row = None
    try:
        row = render_row(recipe, index, seed)
        async with permit(
            target.server, lane=Lane.INTERACTIVE, model=target.model, label="Preview"
        ):
            completion = await target.client.complete(request_for(recipe, row, target.model))
    except (RecipeError, LLMError) as error:
        return Preview(row, None, str(error))
    return Preview(row, outcome(recipe, row, completion))


def pretty(output: Any) -> str:
    return "" if output is None else json.dumps(output, ensure_ascii=False, indent=2)


# --- What comes out -----------------------------------------------------------


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    CHAT = "chat"

    @property
    def content_type(self) -> str:
        return "text/csv; charset=utf-8" if self is Format.CSV else "application/jsonl"

    @property
    def suffix(self) -> str:
        return {"jsonl": ".jsonl", "csv": ".csv", "chat": "-chat.jsonl"}[self.value]


def column_names(recipe: Recipe) -> list[str]:
    """What an accepted row has: the fields of the answer, then the columns it was made from."""
    fields = schemas.field_names(recipe.schema)
    return fields + [column.name for column in recipe.columns if column.name not in fields]


def label_names(recipe: Recipe) -> list[str]:
    """Columns that fit a label, the likeliest first: few values, all known."""
    known = [column.name for column in recipe.columns]
    if recipe.schema is not None:
        properties = recipe.schema["properties"]
        known = [name for name in properties if "enum" in properties[name]] + known
    names = column_names(recipe)
    return list(dict.fromkeys([*known, *names]))


def full_row(spec: Spec, index: int, output: Any) -> dict[str, Any]:
    """The answer's fields, then the columns the row was made from; a field wins over a column."""
    fields = output if isinstance(output, dict) else {"text": output}
    return {**fields, **{
        name: value
        for name, value in row_values(spec.recipe, index, spec.seed).items()
        if name not in fields
    }}  # fmt: skip


async def export(job: Job, chosen: Format) -> AsyncIterator[bytes]:
    """The accepted rows as a file, in order, read in pieces: a job of any size takes no memory.

    JSONL holds them exactly; CSV is for spreadsheets, so a cell that would be a formula gets an
    apostrophe in front; chat is OpenAI's format for fine-tuning.
    """
    spec = job.spec
    lines = _writer(spec, chosen)
    after = -1
    if chosen is Format.CSV:
        yield _csv_line(column_names(spec.recipe)).encode()
    while True:
        items = await in_db(_accepted, job, after)
        if not items:
            return
        yield "".join(map(lines, items)).encode("utf-8", "replace")
        after = items[-1].index


def _accepted(job: Job, after: int) -> list[Item]:
    return list(
        Item.objects.filter(
            batch_id=job.batch_id, status=ItemStatus.ACCEPTED, code="", index__gt=after
        )
        .only("index", "output", "prompt", "raw")
        .order_by("index")[:EXPORT_ROWS]
    )


def cells(spec: Spec, item: Item, names: Sequence[str]) -> list[str] | None:
    """A row's fields as texts; None while there is no answer."""
    if item.output is None:
        return None
    row = full_row(spec, item.index, item.output)
    return [_cell(row.get(name)) for name in names]


def _writer(spec: Spec, chosen: Format) -> Callable[[Item], str]:
    names = column_names(spec.recipe)

    def jsonl(item: Item) -> str:
        return dumps(full_row(spec, item.index, item.output)) + "\n"

    def csv_line(item: Item) -> str:
        row = full_row(spec, item.index, item.output)
        return _csv_line([spreadsheet_safe(_cell(row.get(name))) for name in names])

    def chat(item: Item) -> str:
        messages = [*messages_of(spec, item), {"role": "assistant", "content": item.raw}]
        return dumps({"messages": messages}) + "\n"

    return {Format.JSONL: jsonl, Format.CSV: csv_line, Format.CHAT: chat}[chosen]


def messages_of(spec: Spec, item: Item) -> list[dict[str, str]]:
    """What was sent for this row; nothing for a row that was never asked."""
    if not item.prompt:
        return []
    system = [{"role": "system", "content": spec.system}] if spec.system else []
    return [*system, {"role": "user", "content": item.prompt}]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def _csv_line(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()


def to_dataset(*, job: Job, name: str, text_field: str, label_field: str) -> Dataset:
    """A dataset of the accepted rows.

    Raises:
        RecipeError: there is no such field.
        NothingAccepted: there is no accepted row.
        apps.datasets.services.NothingUsable: no row has both a text and a label.
    """
    spec = job.spec
    known = column_names(spec.recipe)
    for field in (text_field, label_field):
        if field not in known:
            raise RecipeError.of(f"There is no field “{field}”. There are: {', '.join(known)}.")
    if not Item.objects.filter(batch_id=job.batch_id, status=ItemStatus.ACCEPTED).exists():
        raise NothingAccepted("The job has no accepted row yet.")

    def rows() -> Iterator[ExampleRow]:
        after = -1
        while items := _accepted(job, after):
            for item in items:
                row = full_row(spec, item.index, item.output)
                yield ExampleRow(
                    _cell(row.get(text_field)),
                    _cell(row.get(label_field)),
                    origin=f"row {item.index + 1}",
                )
            after = items[-1].index

    return create_dataset(
        owner=job.owner, name=name, rows=rows(), origin=f"Generated by the job “{job.name}”"
    )
