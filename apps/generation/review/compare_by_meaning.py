"""Comparison of rows by the cosine of their embeddings."""

import asyncio
import time
from typing import Any

import numpy as np

from apps.embeddings.services import embed_texts
from apps.generation.recipe.spec import Spec
from apps.generation.review.row_comparison import (
    MEANING_ROWS,
    SECONDS,
    By,
    ComparisonPending,
    RowComparison,
    TooMany,
    build_comparison,
    comparable_rows,
    free_text,
    load_seed_texts,
)
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Use
from apps.servers.services import default_target


class _NotYet(Exception):
    """The time is up and so many texts have no vector."""

    def __init__(self, left: int) -> None:
        super().__init__(left)
        self.left = left


async def compare_by_meaning(batch_id: int, spec: Spec) -> RowComparison | ComparisonPending:
    target = await in_db(default_target, Use.EMBEDDINGS)
    seeds, rows, texts = await in_db(_texts, batch_id, spec)
    if not texts:
        return build_comparison([], [], np.zeros((0, 1), dtype=np.float32), By.MEANING)
    deadline = time.monotonic() + SECONDS

    async def watch(done: int, total: int) -> None:
        if time.monotonic() > deadline and done < total:
            raise _NotYet(total - done)

    try:
        vectors = await embed_texts(target, texts, lane=Lane.INTERACTIVE, progress=watch)
    except _NotYet as ended:
        return ComparisonPending(len(texts) - ended.left, len(texts))
    return await asyncio.to_thread(build_comparison, seeds, rows, vectors, By.MEANING)


def _texts(batch_id: int, spec: Spec) -> tuple[list[int], list[tuple[Any, ...]], list[str]]:
    """The places of the seed rows, the job's rows and the texts of both."""
    found = comparable_rows(batch_id, By.MEANING)
    seeds = load_seed_texts(list(spec.stored.values()))
    count = len(seeds) + found.count()
    if count > MEANING_ROWS:
        raise TooMany(
            f"Comparing by meaning is limited to {MEANING_ROWS:,} rows, seed rows included. This "
            f"job has {count:,}. Compare by text instead."
        )
    texts = [text for _, text in seeds]
    rows = []
    for item in found.order_by("finished", "index").only(
        "pk", "index", "status", "reviewed", "output", "edited"
    ):
        text = free_text(spec, item)
        if text.strip():
            texts.append(text)
            rows.append((item.pk, item.index, item.status, item.reviewed))
    return [at for at, _ in seeds], rows, texts
