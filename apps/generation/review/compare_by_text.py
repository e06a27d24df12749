"""Comparison of rows by their characters: MinHash signatures, stored with the rows."""

import time
from functools import lru_cache

import numpy as np

from apps.batch.services import store_minhashes
from apps.generation.recipe.spec import Spec
from apps.generation.review.row_comparison import (
    CHUNK,
    By,
    RowComparison,
    build_comparison,
    comparable_rows,
    free_text,
    load_seed_texts,
)
from apps.similarity.minhash import HASHES, minhash_signature


def fill_minhashes(batch_id: int, spec: Spec, deadline: float) -> int:
    """Gives rows the signature they lack; returns how many still lack one when the time is up."""
    missing = comparable_rows(batch_id, By.TEXT).filter(minhash=None)
    while items := list(missing.only("pk", "output", "edited")[:CHUNK]):
        if time.monotonic() > deadline:
            return missing.count()
        found = []
        for item in items:
            signature = minhash_signature(free_text(spec, item))
            found.append((b"" if signature is None else signature.tobytes(), item.pk))
        store_minhashes(found)
    return 0


def compare_by_text(batch_id: int, spec: Spec) -> RowComparison:
    seeds = _seed_signatures(tuple(spec.stored.values()))
    signatures = [signature for _, signature in seeds]
    # One that was accepted since has no signature yet, and is compared when this is asked again.
    found = comparable_rows(batch_id, By.TEXT).exclude(minhash=b"").exclude(minhash=None)
    known = list(
        found.order_by("finished", "index").values_list(
            "pk", "index", "status", "reviewed", "minhash"
        )
    )
    signatures += [bytes(minhash or b"") for *_, minhash in known]
    array = np.frombuffer(b"".join(signatures), dtype=np.uint16).reshape(-1, HASHES)
    return build_comparison([at for at, _ in seeds], [row[:4] for row in known], array, By.TEXT)


@lru_cache(maxsize=2)
def _seed_signatures(stored: tuple[int, ...]) -> list[tuple[int, bytes]]:
    """Compute signatures by keys of stored rows, which never change; 20,000 take seconds."""
    found = []
    for at, text in load_seed_texts(stored):
        signature = minhash_signature(text)
        if signature is not None:
            found.append((at, signature.tobytes()))
    return found
