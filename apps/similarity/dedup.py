"""Finds near-duplicates of a text among many, by MinHash and locality-sensitive hashing.

Signatures are cut into bands (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4);
only texts that share a band are compared. 100,000 texts take 40 MB of memory and are indexed from
their stored signatures within a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.similarity.minhash import HASHES, Signature, minhash_signature

# From a threshold on: (bands, hashes of a band). A pair that is as similar shares a band with a
# probability of 98 % at least; a pair that is less similar is seldom compared at all.
BANDINGS = ((0.8, (8, 4)), (0.7, (16, 4)), (0.6, (32, 4)), (0.5, (30, 3)), (0.0, (64, 2)))
BUCKET = 8  # texts of one bucket that are compared
LATEST = 2_000

_band_weights = np.random.default_rng(20260102).integers(
    1, 2**63, size=4, dtype=np.uint64
) | np.uint64(1)


@dataclass(frozen=True, slots=True)
class Match:
    """The most similar text that is known."""

    key: int
    similarity: float
    """Estimated share of 5-grams in common (Jaccard), within about 0.04."""


class NearDuplicateIndex:
    """Texts by their signatures, to find the most similar one.

    The band values of most texts lie sorted in arrays (8 bytes each), those of the latest in
    dictionaries, which are sorted in when they have become a fifth of all.
    """

    def __init__(self, threshold: float = 0.8) -> None:
        """
        Args:
            threshold: the least similarity that is searched for.
        """
        self._bands, self._rows = next(banding for least, banding in BANDINGS if threshold >= least)
        self._signatures = np.zeros((256, HASHES), dtype=np.uint16)
        self._keys = np.zeros(256, dtype=np.int64)
        self._count = 0
        self._values = np.zeros((self._bands, 0), dtype=np.uint32)
        self._places = np.zeros((self._bands, 0), dtype=np.uint32)
        self._latest: list[dict[int, list[int]]] = [{} for _ in range(self._bands)]

    def __len__(self) -> int:
        return self._count

    def find_nearest(self, text: str) -> Match | None:
        """Return the most similar text among those that share a band."""
        signature = minhash_signature(text)
        return None if signature is None else self.find_nearest_signature(signature)

    def find_nearest_signature(self, signature: Signature, *, exclude: int = -1) -> Match | None:
        """Return the most similar text with another key than `exclude`."""
        places = np.array(sorted(self.find_candidates(signature)), dtype=np.int64)
        places = places[self._keys[places] != exclude]
        if not len(places):
            return None
        similarities = (self._signatures[places] == signature).mean(axis=1)
        best = int(similarities.argmax())
        return Match(int(self._keys[places[best]]), float(similarities[best]))

    def add(self, key: int, text: str) -> None:
        signature = minhash_signature(text)
        if signature is not None:
            self._add(key, signature)

    def add_signatures(self, keys: Sequence[int], signatures: NDArray[np.uint16]) -> None:
        """Add texts by their stored signatures, (len(keys), HASHES)."""
        end = self._count + len(keys)
        self._grow(end)
        self._keys[self._count : end] = keys
        self._signatures[self._count : end] = signatures
        self._count = end
        self._sort_latest()

    def find_or_add(self, key: int, signature: Signature, threshold: float) -> Match | None:
        """Return the text that this one nearly duplicates; if there is none, add this one.

        In one step, so that of two duplicates in progress at once the second is found.
        """
        match = self.find_nearest_signature(signature, exclude=key)
        if match is not None and match.similarity >= threshold:
            return match
        self._add(key, signature)
        return None

    def find_candidates(self, signature: Signature) -> set[int]:
        """Return the places of texts that share a band."""
        found: set[int] = set()
        for band, value in enumerate(self._band_values(signature[None])[0]):
            first = int(self._values[band].searchsorted(value))
            last = int(self._values[band].searchsorted(value, side="right"))
            found.update(self._places[band, first : min(last, first + BUCKET)].tolist())
            found.update(self._latest[band].get(int(value), ()))
        return found

    def _add(self, key: int, signature: Signature) -> None:
        place = self._count
        self._grow(place + 1)
        self._signatures[place] = signature
        self._keys[place] = key
        self._count += 1
        for band, value in enumerate(self._band_values(signature[None])[0].tolist()):
            bucket = self._latest[band].setdefault(value, [])
            if len(bucket) < BUCKET:
                bucket.append(place)
        if self._count - self._values.shape[1] > max(LATEST, self._count // 5):
            self._sort_latest()

    def _grow(self, size: int) -> None:
        there = len(self._keys)
        if size > there:
            more = max(size, there + there // 2) - there
            self._signatures = np.pad(self._signatures, ((0, more), (0, 0)))
            self._keys = np.pad(self._keys, (0, more))

    def _sort_latest(self) -> None:
        values = np.empty((self._bands, self._count), dtype=np.uint32)
        for start in range(0, self._count, 10_000):  # in pieces: memory stays small
            end = min(start + 10_000, self._count)
            values[:, start:end] = self._band_values(self._signatures[start:end]).T
        self._places = values.argsort(axis=1, kind="stable").astype(np.uint32)
        self._values = np.take_along_axis(values, self._places.astype(np.int64), axis=1)
        self._latest = [{} for _ in range(self._bands)]

    def _band_values(self, signatures: NDArray[np.uint16]) -> NDArray[np.uint32]:
        """Return (texts, bands). Different bands may share a value: only candidates."""
        bands, rows = self._bands, self._rows
        parts = signatures[:, : bands * rows].reshape(-1, bands, rows).astype(np.uint64)
        mixed = (parts * _band_weights[:rows]).sum(axis=2, dtype=np.uint64)
        values: NDArray[np.uint32] = (mixed >> np.uint64(32)).astype(np.uint32)
        return values
