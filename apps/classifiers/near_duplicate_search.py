"""Near-duplicates within a dataset, found by their vectors, which the datasets' room has not."""

import asyncio

import numpy as np

from apps.classifiers.errors import TooManyRows
from apps.datasets.errors import SnapshotGone
from apps.datasets.hooks import TextLimit
from apps.datasets.models import Dataset, Split
from apps.datasets.services import (
    NearPair,
    SnapshotRow,
    read_snapshot,
    snapshot,
    store_near_duplicates,
)
from apps.embeddings.services import Preparation, Vectors, embed_prepared, identify
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import DefaultServer, Use
from apps.servers.services import NoServer, Target, choose_target, default_target
from apps.similarity.cosine import NEAR, find_near_pairs
from apps.similarity.text_key import text_key
from apps.work.models import TaskState
from apps.work.services import HeldTask

# All against all grows with the square: this many rows of 384 numbers take a core some minutes.
MAX_ROWS = 100_000


def find(held: HeldTask) -> None:
    """Embed what is unseen, compare, and record: the handler of `NEAR_DUPLICATE_SEARCH`.

    Compares test rows with training rows if there is a test split, else every row with every other.
    """
    dataset = Dataset.objects.filter(pk=held.subject).first()
    if dataset is None:
        return
    try:
        ref = snapshot(dataset)
        rows = list(read_snapshot(ref))
        if len(rows) > MAX_ROWS:
            raise TooManyRows(
                f"Too many rows to search for near-duplicates: {len(rows):,}. The limit is "
                f"{MAX_ROWS:,}. Training still compares test rows with all others."
            )
        target = default_target(Use.EMBEDDINGS)
        vectors, model = asyncio.run(_embed(held, target, [row.text for row in rows]))
        pairs = _pairs(rows, vectors)
        with held.fence():
            store_near_duplicates(ref, pairs, model=model, threshold=NEAR)
            held.end(TaskState.DONE)
    except (LLMError, NoServer, SnapshotGone, TooManyRows) as error:
        held.end(TaskState.FAILED, str(error))


async def _embed(held: HeldTask, target: Target, texts: list[str]) -> tuple[Vectors, str]:
    async def report(done: int, total: int) -> None:
        await in_db(held.report, done, total)

    try:
        embedder = await identify(target, lane=Lane.BATCH)
        # A text that is too long is compared by its beginning: better than not at all.
        prepared = await embed_prepared(
            embedder, texts, Preparation(long_texts="cut"), lane=Lane.BATCH, progress=report
        )
        return prepared.vectors, embedder.target.model
    finally:
        await close_clients()
        await close_async_redis()


def _pairs(rows: list[SnapshotRow], vectors: Vectors) -> list[NearPair]:
    keys = np.asarray([text_key(row.text) for row in rows], dtype=np.int64)
    test = np.asarray([row.split == Split.TEST for row in rows], dtype=np.bool_)
    if test.any() and not test.all():
        left, right = np.flatnonzero(test), np.flatnonzero(~test)
        found = find_near_pairs(vectors[left], vectors[right], same=(keys[left], keys[right]))
    else:
        left = right = np.arange(len(rows))
        found = find_near_pairs(vectors, same=(keys, keys))
    return [
        NearPair(rows[left[pair.a]].index, rows[right[pair.b]].index, pair.cosine) for pair in found
    ]


def text_limit() -> TextLimit | None:
    """The longest text of the default embedding model, as last seen; None if not reported."""
    default = DefaultServer.objects.select_related("server").filter(use=Use.EMBEDDINGS).first()
    if default is None or not default.server.context:
        return None
    chosen = choose_target(default.server, default.model, Use.EMBEDDINGS).model
    return TextLimit(
        "the embedding model" if chosen == "default" else chosen, default.server.context
    )
