"""Filter for rows that repeat the job's own rows, its seed rows or a test set.

The one process that works on a job keeps its texts in memory. Another one that takes over reads
them from the rows, which store their signatures.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from apps.batch.services import accepted_rows_since, rows_of
from apps.generation.models import StoredRows
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.runtime.async_db import in_db
from apps.similarity.contamination import TestTextIndex
from apps.similarity.dedup import Match, NearDuplicateIndex
from apps.similarity.minhash import HASHES, minhash_signature

JOBS_IN_MEMORY = 4
CHUNK_ROWS = 20_000


@dataclass
class DuplicateFilter:
    """Texts that a job's rows must not repeat."""

    spec: Spec
    rows: NearDuplicateIndex = field(init=False)
    seeds: NearDuplicateIndex = field(init=False)
    test_set: TestTextIndex | None = None
    read_until: datetime | None = None
    read_index: int = -1
    seen: bytearray = field(default_factory=bytearray)
    """One byte per row, 1 if its text is among `rows`."""

    def __post_init__(self) -> None:
        near = self.spec.filters.near or 1.0
        self.rows, self.seeds = NearDuplicateIndex(near), NearDuplicateIndex(near)

    def has(self, index: int) -> bool:
        return index < len(self.seen) and bool(self.seen[index])

    def remember(self, index: int) -> None:
        if index >= len(self.seen):
            self.seen.extend(bytes(index + 1 - len(self.seen)))
        self.seen[index] = 1

    def check(self, index: int, texts: Sequence[str]) -> "DuplicateCheck":
        """Check a row for duplicates; a new one is remembered."""
        text = "\n".join(texts)
        if not text.strip():
            return DuplicateCheck()
        if self.test_set is not None and (sentence := self.test_set.describe_overlap(text)):
            return DuplicateCheck("contaminated", sentence)
        near = self.spec.filters.near
        signature = minhash_signature(text) if near is not None else None
        if near is None or signature is None:
            return DuplicateCheck()
        match = self.seeds.find_nearest_signature(signature)
        minhash = signature.tobytes()  # also of a rejected row: another threshold may restore it
        if match is not None and match.similarity >= near:
            return DuplicateCheck("seed_duplicate", _same_as(match, "seed row"), minhash)
        match = self.rows.find_or_add(index, signature, near)
        if match is not None:
            return DuplicateCheck("near_duplicate", _same_as(match, "row"), minhash)
        self.remember(index)
        return DuplicateCheck(minhash=minhash)


def _same_as(match: Match, what: str) -> str:
    return f"About {round(100 * match.similarity)}% similar to {what} {match.key + 1}."


@dataclass(frozen=True, slots=True)
class DuplicateCheck:
    """Result of a check: code and sentence, empty for a new row."""

    code: str = ""
    reason: str = ""
    minhash: bytes = b""
    """Signature by which another process recognises the row."""


_filters: OrderedDict[int, DuplicateFilter] = OrderedDict()


async def filter_for_job(
    batch_id: int, spec: Spec, tables: dict[str, Table]
) -> DuplicateFilter | None:
    """Return the filter of a job, up to date; None if its spec asks for none."""
    if spec.filters.near is None and spec.filters.test_set is None:
        return None
    duplicates = _filters.get(batch_id)
    if duplicates is None or duplicates.spec != spec:
        duplicates = DuplicateFilter(spec)
        if spec.filters.test_set is not None:
            table = await in_db(stored_table, spec.filters.test_set)
            texts = [row.get("text", "") for row in table.rows]
            duplicates.test_set = await asyncio.to_thread(TestTextIndex, texts)
        if spec.filters.near is not None:
            await asyncio.to_thread(_add_seeds, duplicates, tables)
        _filters[batch_id] = duplicates
        while len(_filters) > JOBS_IN_MEMORY:
            _filters.popitem(last=False)
    _filters.move_to_end(batch_id)
    await _catch_up(batch_id, duplicates)
    return duplicates


def stored_table(pk: int) -> Table:
    return Table(StoredRows.objects.get(pk=pk).rows)


def stored_tables(spec: Spec) -> dict[str, Table]:
    return {name: stored_table(pk) for name, pk in spec.stored.items()}


def _add_seeds(duplicates: DuplicateFilter, tables: dict[str, Table]) -> None:
    for table in tables.values():
        for place, text in enumerate(table.texts):
            duplicates.seeds.add(place, text)


async def _catch_up(batch_id: int, duplicates: DuplicateFilter) -> None:
    """Add the accepted rows that another process finished."""
    if duplicates.spec.filters.near is None:
        return
    while True:
        last = duplicates.read_until, duplicates.read_index
        known = await in_db(_finished_since, batch_id, *last)
        if not known:
            return
        await in_db(_add_rows, batch_id, duplicates, known)
        duplicates.read_index, duplicates.read_until, _ = known[-1]
        if len(known) < CHUNK_ROWS:
            return


Known = tuple[int, datetime | None, bytes | memoryview | None]
"""Index of a row, time at which it was finished, signature."""


def _finished_since(batch_id: int, since: datetime | None, index: int) -> list[Known]:
    known = accepted_rows_since(batch_id, since, index)
    return list(known.values_list("index", "finished", "minhash")[:CHUNK_ROWS])


def _add_rows(batch_id: int, duplicates: DuplicateFilter, known: list[Known]) -> None:
    new = [(index, minhash) for index, _, minhash in known if not duplicates.has(index)]
    signed = {index: minhash for index, minhash in new if minhash}
    if signed:
        signatures = np.frombuffer(b"".join(signed.values()), dtype=np.uint16)
        duplicates.rows.add_signatures(list(signed), signatures.reshape(len(signed), HASHES))
    without = [index for index, _ in new if index not in signed]
    for index, output in _outputs(batch_id, without):
        texts = answer_check.free_texts_of(duplicates.spec.recipe, output)
        duplicates.rows.add(index, "\n".join(texts))
    for index, _ in new:
        duplicates.remember(index)


def _outputs(batch_id: int, indices: list[int]) -> list[tuple[int, Any]]:
    """Return outputs of rows without a signature: restored by hand, or older than signatures."""
    if not indices:
        return []
    items = rows_of(batch_id).filter(index__in=indices)
    return [(item.index, item.current_output) for item in items.only("index", "output", "edited")]
