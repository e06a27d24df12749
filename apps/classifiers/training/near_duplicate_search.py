"""Near copies within a dataset, for its page: the datasets' room has no vectors, this one does."""

import asyncio
import logging

import numpy as np

from apps.datasets import near_duplicates
from apps.datasets.models import Dataset, Split
from apps.datasets.rows.history import SnapshotGone, SnapshotRow
from apps.datasets.services import read_snapshot, snapshot
from apps.datasets.text_limits import TextLimit
from apps.embeddings.cache import identify
from apps.embeddings.preparation import Preparation, embed_prepared
from apps.embeddings.sender import Vectors
from apps.files import text_key
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import DefaultServer, Use
from apps.servers.services import NoServer, Target, default_target, target
from apps.similarity.cosine import NEAR, near_pairs

log = logging.getLogger(__name__)

# All against all grows with the square: this many rows of 384 numbers take a core some minutes.
MOST_ROWS = 100_000


def find(dataset_id: int) -> None:
    """Embeds what is unseen, compares, and records: test rows against training rows where there is
    a test split, else every row against every other. Says so where it cannot."""
    dataset = Dataset.objects.filter(pk=dataset_id).first()
    if dataset is None:
        return
    try:
        ref = snapshot(dataset)
        rows = list(read_snapshot(ref))
        if len(rows) > MOST_ROWS:
            near_duplicates.fail(
                dataset_id,
                f"Near copies are looked for among at most {MOST_ROWS:,} rows, these are "
                f"{len(rows):,}. A training run compares its test rows with all others.",
            )
            return
        target = default_target(Use.EMBEDDINGS)
        vectors, model = asyncio.run(_embed(dataset_id, target, [row.text for row in rows]))
        near_duplicates.record(ref, _pairs(rows, vectors), model=model, threshold=NEAR)
    except (LLMError, NoServer, SnapshotGone) as error:
        near_duplicates.fail(dataset_id, str(error))
    except Exception:
        near_duplicates.fail(dataset_id, "Something went wrong. Details are in the worker log.")
        raise


async def _embed(dataset_id: int, target: Target, texts: list[str]) -> tuple[Vectors, str]:
    async def progress(done: int, total: int) -> None:
        await in_db(near_duplicates.progress, dataset_id, done, total)

    try:
        embedder = await identify(target, lane=Lane.BATCH)
        # A text that is too long is compared by its beginning: better than not at all.
        prepared = await embed_prepared(
            embedder, texts, Preparation(long_texts="cut"), lane=Lane.BATCH, progress=progress
        )
        return prepared.vectors, embedder.target.model
    finally:
        await close_clients()
        await close_async_redis()


def _pairs(rows: list[SnapshotRow], vectors: Vectors) -> list[near_duplicates.Near]:
    keys = np.asarray([text_key(row.text) for row in rows], dtype=np.int64)
    test = np.asarray([row.split == Split.TEST for row in rows], dtype=np.bool_)
    if test.any() and not test.all():
        left, right = np.flatnonzero(test), np.flatnonzero(~test)
        found = near_pairs(vectors[left], vectors[right], same=(keys[left], keys[right]))
    else:
        left = right = np.arange(len(rows))
        found = near_pairs(vectors, same=(keys, keys))
    return [
        near_duplicates.Near(rows[left[pair.a]].index, rows[right[pair.b]].index, pair.cosine)
        for pair in found
    ]


def text_limit() -> TextLimit | None:
    """How long a text may be for the model that is set for embeddings, as it was last seen."""
    default = DefaultServer.objects.select_related("server").filter(use=Use.EMBEDDINGS).first()
    if default is None or not default.server.context:
        return None
    chosen = target(default.server, default.model, Use.EMBEDDINGS).model
    return TextLimit(
        "the embedding model" if chosen == "default" else chosen, default.server.context
    )
