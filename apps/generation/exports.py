"""What comes out of a job: files, a dataset."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from apps.batch.models import Item, ItemStatus
from apps.core.db import in_db
from apps.datasets.formats import ExampleRow, spreadsheet_safe
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.generation import prompts
from apps.generation.models import Job
from apps.generation.problems import RecipeError
from apps.generation.recipe import dumps, row_values
from apps.generation.rows import parts_of
from apps.generation.spec import Spec

EXPORT_ROWS = 500


class NothingAccepted(Exception):
    """The job has no accepted row yet, so there is nothing to take over."""


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


def full_row(spec: Spec, item: Item) -> dict[str, Any]:
    """All fields of a finished row, as a person left them, in order."""
    output = item.final
    fields = output if isinstance(output, dict) else {"text": output}
    if not spec.recipe.is_plain:
        return fields
    drawn = row_values(spec.recipe, item.place, spec.seed)
    return {**fields, **{name: value for name, value in drawn.items() if name not in fields}}


async def export(job: Job, chosen: Format) -> AsyncIterator[bytes]:
    """The accepted rows as a file, in order, read in pieces: a job of any size takes no memory.

    JSONL holds them exactly; CSV is for spreadsheets, so a cell that would be a formula gets an
    apostrophe in front; chat is OpenAI's format for fine-tuning.
    """
    spec = job.spec
    lines = _writer(spec, chosen)
    after = -1
    if chosen is Format.CSV:
        yield _csv_line(spec.recipe.field_names).encode()
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
        .only("index", "input", "output", "edited", "prompt", "raw")
        .order_by("index")[:EXPORT_ROWS]
    )


def cells(spec: Spec, item: Item, names: Sequence[str]) -> list[str] | None:
    """A row's fields as texts; None while there is no answer."""
    if item.output is None:
        return None
    row = full_row(spec, item)
    return [prompts.written(row.get(name)) for name in names]


def _writer(spec: Spec, chosen: Format) -> Callable[[Item], str]:
    names = spec.recipe.field_names

    def jsonl(item: Item) -> str:
        return dumps(full_row(spec, item)) + "\n"

    def csv_line(item: Item) -> str:
        row = full_row(spec, item)
        return _csv_line([spreadsheet_safe(prompts.written(row.get(name))) for name in names])

    def chat(item: Item) -> str:
        messages = [
            *messages_of(spec, item),
            {"role": "assistant", "content": last_reply(spec, item)},
        ]
        return dumps({"messages": messages}) + "\n"

    return {Format.JSONL: jsonl, Format.CSV: csv_line, Format.CHAT: chat}[chosen]


def messages_of(spec: Spec, item: Item) -> list[dict[str, str]]:
    """What was sent for this row; nothing for a row that was never asked."""
    asked = parts_of(spec.recipe, item.prompt)
    if not asked:
        return []
    replies = parts_of(spec.recipe, item.raw)
    messages = [{"role": "system", "content": spec.system}] if spec.system else []
    for at, question in enumerate(asked):
        messages.append({"role": "user", "content": question})
        if at < len(asked) - 1:
            messages.append({"role": "assistant", "content": replies[at]})
    return messages


def last_reply(spec: Spec, item: Item) -> str:
    """What the model wrote last, to the letter."""
    replies = parts_of(spec.recipe, item.raw)
    return replies[-1] if replies else ""


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
    known = spec.recipe.field_names
    for field in (text_field, label_field):
        if field not in known:
            raise RecipeError.of(f"There is no field “{field}”. There are: {', '.join(known)}.")
    if not Item.objects.filter(batch_id=job.batch_id, status=ItemStatus.ACCEPTED).exists():
        raise NothingAccepted("The job has no accepted row yet.")

    def rows() -> Iterator[ExampleRow]:
        after = -1
        while items := _accepted(job, after):
            for item in items:
                row = full_row(spec, item)
                yield ExampleRow(
                    prompts.written(row.get(text_field)),
                    prompts.written(row.get(label_field)),
                    origin=f"row {item.index + 1}",
                )
            after = items[-1].index

    return create_dataset(
        owner=job.owner, name=name, rows=rows(), origin=f"Generated by the job “{job.name}”"
    )
