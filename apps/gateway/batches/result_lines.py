"""Writes the rows of a batch's job as OpenAI's result lines: answers, and errors apart."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from apps.batch.models import FINISHED, Item, ItemStatus
from apps.batch.services import rows_of
from apps.core.schemas.json_types import JsonObject
from apps.gateway.batches.request_row import EXPIRED
from apps.gateway.files.result_file import ResultFile
from apps.gateway.models import FileBatch

CHUNK = 50  # rows in memory, some MB each at most
FIELDS = ("index", "status", "code", "reason", "input", "output", "raw")


@dataclass(slots=True)
class Results:
    """What became of the requests of a batch."""

    completed: int = 0
    failed: int = 0
    late: int = 0
    """Requests whose turn came after the deadline."""
    unsent: int = 0
    """Requests that were not done when their job ended."""


def write_results(
    batch: FileBatch, job_id: int, output: ResultFile, errors: ResultFile, unsent: tuple[str, str]
) -> Results:
    """Write each row to one of the files. Each is read once: none is in both or in neither.

    Args:
        unsent: code and sentence for rows that were not done.
    """
    results = Results()
    for row in _in_order(job_id):
        is_done = row.status in FINISHED
        error = (row.code, row.reason) if is_done else unsent
        is_accepted = row.status == ItemStatus.ACCEPTED
        (output if is_accepted else errors).write(result_line(batch, row, error))
        if is_accepted:
            results.completed += 1
        elif not is_done:
            results.unsent += 1
        elif row.code == EXPIRED:
            results.late += 1
        else:
            results.failed += 1
    return results


def _in_order(job_id: int) -> Iterator[Item]:
    rows, index = rows_of(job_id).only(*FIELDS).order_by("index"), -1
    while found := list(rows.filter(index__gt=index)[:CHUNK]):
        yield from found
        index = found[-1].index


def result_line(batch: FileBatch, row: Item, error: tuple[str, str]) -> bytes:
    """Return the line of a row. The answer of the server stands there as it came.

    Args:
        error: code and sentence, for a row without an answer.
    """
    name = f"batch_req_{batch.key.hex}_{row.index}"
    head: JsonObject = {"id": name, "custom_id": row.input["custom_id"]}
    begin = json.dumps(head)[:-1]
    if row.output:
        status = int(row.output["status_code"])
        # A line break is white space in JSON, but ends a line here.
        body = row.raw.replace("\r", " ").replace("\n", " ")
        response = f'{{"status_code": {status}, "request_id": "{name}", "body": {body}}}'
        return f'{begin}, "response": {response}, "error": null}}\n'.encode()
    code, message = error
    detail = json.dumps({"code": code, "message": message})
    return f'{begin}, "response": null, "error": {detail}}}\n'.encode()
