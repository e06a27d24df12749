"""MinHash signatures (Broder 1997, "On the resemblance and containment of documents").

Of character 5-grams of the normalised text. A signature has 256 bytes and is stored with the row.
"""

import numpy as np
from numpy.typing import NDArray

from apps.similarity.text_key import normalise_text

SHINGLE = 5  # characters
HASHES = 128

Signature = NDArray[np.uint16]

# Stored signatures depend on these numbers and on the order in which they are drawn.
_random = np.random.default_rng(20260101)
_multipliers = _random.integers(1, 2**63, size=HASHES, dtype=np.uint64) | np.uint64(1)
_offsets = _random.integers(0, 2**63, size=HASHES, dtype=np.uint64)
_powers = np.cumprod(np.full(SHINGLE, 1_000_003, dtype=np.uint64))


def shingles(text: str) -> NDArray[np.uint64]:
    """Return the distinct hashes of all character 5-grams; of the whole text if it is shorter."""
    codes = np.frombuffer(normalise_text(text).encode("utf-32-le"), dtype=np.uint32).astype(
        np.uint64
    )
    if not len(codes):
        return np.zeros(0, dtype=np.uint64)
    if len(codes) < SHINGLE:
        codes = np.pad(codes, (0, SHINGLE - len(codes)))
    windows = np.lib.stride_tricks.sliding_window_view(codes, SHINGLE)
    return np.unique((windows * _powers).sum(axis=1, dtype=np.uint64))


def minhash_signature(text: str) -> Signature | None:
    """Return 16 bits of the smallest value of each hash, (HASHES,); None for a blank text."""
    found = shingles(text)
    if not len(found):
        return None
    smallest = np.full(HASHES, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(found), 2_000):  # a long text in pieces: memory stays small
        part = found[start : start + 2_000]
        hashed = (_multipliers[:, None] * part[None, :] + _offsets[:, None]) >> np.uint64(16)
        np.minimum(smallest, hashed.min(axis=1), out=smallest)
    return (smallest & np.uint64(0xFFFF)).astype(np.uint16)


def jaccard_similarity(first: str, second: str) -> float:
    """Return the exact share of 5-grams that two texts have in common, 0 to 1."""
    one, two = shingles(first), shingles(second)
    union = len(np.union1d(one, two))
    return len(np.intersect1d(one, two)) / union if union else 1.0
