"""Whether a row repeats what is there: the job's own rows, its seed rows, a test set.

What is compared is kept in memory by the one process that works on the job, and read back from the
rows when another process takes over.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from apps.batch.models import Item, ItemStatus
from apps.core.db import in_db
from apps.generation import quality
from apps.generation.duplicates import NearDuplicates, TestSet
from apps.generation.models import StoredRows
from apps.generation.seeds import Table
from apps.generation.spec import Spec

KEPT = 4  # jobs whose texts stay in memory
CHUNK = 2_000


@dataclass
class Guard:
    """What a job's rows are held against."""

    spec: Spec
    rows: NearDuplicates = field(default_factory=NearDuplicates)
    seeds: NearDuplicates = field(default_factory=NearDuplicates)
    test_set: TestSet | None = None
    read_until: datetime | None = None
    read_index: int = -1
    known: bytearray = field(default_factory=bytearray)
    """One byte a row: whether its text is among `rows`."""

    def has(self, index: int) -> bool:
        return index < len(self.known) and bool(self.known[index])

    def note(self, index: int) -> None:
        if index >= len(self.known):
            self.known.extend(bytes(index + 1 - len(self.known)))
        self.known[index] = 1

    def problem(self, index: int, texts: Sequence[str]) -> tuple[str, str]:
        """(code, sentence) of what the row repeats; empty where it is new, and then remembered."""
        text = "\n".join(texts)
        if not text.strip():
            return "", ""
        if self.test_set is not None and (sentence := self.test_set.problem(text)):
            return "contaminated", sentence
        near = self.spec.filters.near
        if near is None:
            return "", ""
        match = self.seeds.nearest(text)
        if match is not None and match.share >= near:
            share = round(100 * match.share)
            return "seed_duplicate", f"About {share} % the same as seed row {match.key + 1}."
        match = self.rows.check_and_add(index, text, near)
        if match is not None:
            share = round(100 * match.share)
            return "near_duplicate", f"About {share} % the same as row {match.key + 1}."
        self.note(index)
        return "", ""


_guards: OrderedDict[int, Guard] = OrderedDict()


async def guard_for(batch_id: int, spec: Spec, tables: dict[str, Table]) -> Guard | None:
    """The job's guard, up to date; None where nothing is compared."""
    if spec.filters.near is None and spec.filters.test_set is None:
        return None
    guard = _guards.get(batch_id)
    if guard is None or guard.spec != spec:
        guard = Guard(spec)
        if spec.filters.test_set is not None:
            table = await in_db(stored_table, spec.filters.test_set)
            texts = [row.get("text", "") for row in table.rows]
            guard.test_set = await asyncio.to_thread(TestSet, texts)
        if spec.filters.near is not None:
            await asyncio.to_thread(_add_seeds, guard, tables)
        _guards[batch_id] = guard
        while len(_guards) > KEPT:
            _guards.popitem(last=False)
    _guards.move_to_end(batch_id)
    await _catch_up(batch_id, guard)
    return guard


def stored_table(pk: int) -> Table:
    return Table(StoredRows.objects.get(pk=pk).rows)


def stored_tables(spec: Spec) -> dict[str, Table]:
    return {name: stored_table(pk) for name, pk in spec.stored.items()}


def _add_seeds(guard: Guard, tables: dict[str, Table]) -> None:
    for table in tables.values():
        for place, row in enumerate(table.rows):
            guard.seeds.add(place, row.get("text") or "\n".join(row.values()))


async def _catch_up(batch_id: int, guard: Guard) -> None:
    """Reads the accepted rows that another process finished."""
    if guard.spec.filters.near is None:
        return
    while items := await in_db(_finished_since, batch_id, guard.read_until, guard.read_index):
        await asyncio.to_thread(_add_rows, guard, items)
        guard.read_until, guard.read_index = items[-1].finished, items[-1].index
        if len(items) < CHUNK:
            return


def _finished_since(batch_id: int, since: datetime | None, index: int) -> list[Item]:
    items = Item.objects.filter(batch_id=batch_id, status=ItemStatus.ACCEPTED)
    if since is not None:
        later = items.filter(finished__gt=since)
        same = items.filter(finished=since, index__gt=index)
        items = later | same
    return list(items.order_by("finished", "index").only("index", "output", "finished")[:CHUNK])


def _add_rows(guard: Guard, items: list[Item]) -> None:
    for item in items:
        if not guard.has(item.index):  # as all are after a slice of this same process
            guard.rows.add(item.index, "\n".join(quality.texts_of(guard.spec.recipe, item.output)))
            guard.note(item.index)
