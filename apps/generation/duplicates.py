"""Texts that are nearly the same, and texts that repeat a test set (pure).

Near duplicates: MinHash (Broder 1997, "On the resemblance and containment of documents") over
character 5-grams of the normalised text, found through locality-sensitive hashing in bands
(Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4). 256 bytes and eight table
entries a text, so 100,000 texts take about 110 MB and a look-up takes no longer than the first.

Contamination: eight words in a row that also stand in a test text, the overlap that Brown et al.
2020 (GPT-3, appendix C) and later work look for, or a near duplicate of a test text.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHINGLE = 5  # characters
HASHES = 128
BANDS, ROWS = 8, 4  # of the first 32: a pair with 0.8 in common is found with 98.5 %
BUCKET = 8  # how many texts of one bucket are compared
WORDS = 8
TEST_NEAR = 0.8

Signature = NDArray[np.uint16]

_random = np.random.default_rng(20260101)
_multipliers = _random.integers(1, 2**63, size=HASHES, dtype=np.uint64) | np.uint64(1)
_offsets = _random.integers(0, 2**63, size=HASHES, dtype=np.uint64)
_powers = np.cumprod(np.full(SHINGLE, 1_000_003, dtype=np.uint64))
_band_weights = _random.integers(1, 2**63, size=ROWS, dtype=np.uint64) | np.uint64(1)


def normalised(text: str) -> str:
    """As a reader compares: without case, accents written two ways, and doubled white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def shingles(text: str) -> NDArray[np.uint64]:
    """The distinct hashes of all runs of five characters; of the whole text if it is shorter."""
    codes = np.frombuffer(normalised(text).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    if not len(codes):
        return np.zeros(0, dtype=np.uint64)
    if len(codes) < SHINGLE:
        codes = np.pad(codes, (0, SHINGLE - len(codes)))
    windows = np.lib.stride_tricks.sliding_window_view(codes, SHINGLE)
    return np.unique((windows * _powers).sum(axis=1, dtype=np.uint64))


def _signature(text: str) -> Signature | None:
    """The smallest value of each hash, 16 bits of it; None for a text with nothing in it."""
    found = shingles(text)
    if not len(found):
        return None
    smallest = np.full(HASHES, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(found), 2_000):  # a long text in pieces: memory stays small
        part = found[start : start + 2_000]
        hashed = (_multipliers[:, None] * part[None, :] + _offsets[:, None]) >> np.uint64(16)
        np.minimum(smallest, hashed.min(axis=1), out=smallest)
    return (smallest & np.uint64(0xFFFF)).astype(np.uint16)


@dataclass(frozen=True, slots=True)
class Match:
    key: int
    share: float
    """Estimated share of 5-grams in common (Jaccard), within about 0.04."""


class NearDuplicates:
    """Texts by their signatures."""

    def __init__(self) -> None:
        self._signatures: NDArray[np.uint16] = np.zeros((256, HASHES), dtype=np.uint16)
        self._keys: list[int] = []
        self._bands: list[dict[int, int | list[int]]] = [{} for _ in range(BANDS)]

    def __len__(self) -> int:
        return len(self._keys)

    def nearest(self, text: str) -> Match | None:
        """The most similar text, of those worth comparing."""
        signature = _signature(text)
        return None if signature is None else self._nearest(signature)

    def add(self, key: int, text: str) -> None:
        signature = _signature(text)
        if signature is not None:
            self._add(key, signature)

    def check_and_add(self, key: int, text: str, threshold: float) -> Match | None:
        """The text that this one nearly repeats; else it is added.

        In one step, so that of two twins in flight at once the second is found.
        """
        signature = _signature(text)
        if signature is None:
            return None
        match = self._nearest(signature, but=key)
        if match is not None and match.share >= threshold:
            return match
        self._add(key, signature)
        return None

    def _nearest(self, signature: Signature, but: int = -1) -> Match | None:
        places: set[int] = set()
        for band, value in zip(self._bands, _band_values(signature), strict=True):
            found = band.get(value)
            if isinstance(found, list):
                places.update(found)
            elif found is not None:
                places.add(found)
        at = [place for place in places if self._keys[place] != but]
        if not at:
            return None
        shares = (self._signatures[at] == signature).mean(axis=1)
        best = int(shares.argmax())
        return Match(self._keys[at[best]], float(shares[best]))

    def _add(self, key: int, signature: Signature) -> None:
        place = len(self._keys)
        if place == len(self._signatures):
            grown = np.zeros((place + max(place // 2, 256), HASHES), dtype=np.uint16)
            grown[:place] = self._signatures
            self._signatures = grown
        self._signatures[place] = signature
        self._keys.append(key)
        for band, value in zip(self._bands, _band_values(signature), strict=True):
            found = band.get(value)
            if found is None:
                band[value] = place
            elif isinstance(found, int):
                band[value] = [found, place]
            elif len(found) < BUCKET:
                found.append(place)


def _band_values(signature: Signature) -> list[int]:
    rows = signature[: BANDS * ROWS].reshape(BANDS, ROWS).astype(np.uint64)
    values: list[int] = ((rows * _band_weights).sum(axis=1, dtype=np.uint64) >> 16).tolist()
    return values


def similarity(first: str, second: str) -> float:
    """The exact share of 5-grams two texts have in common (Jaccard), 0 to 1."""
    one, two = shingles(first), shingles(second)
    union = len(np.union1d(one, two))
    return len(np.intersect1d(one, two)) / union if union else 1.0


class TestSet:
    """What must not be repeated: real texts on which something will be judged later."""

    __test__ = False  # no test of pytest's

    def __init__(self, texts: Iterable[str]) -> None:
        self._near = NearDuplicates()
        self._runs: dict[int, int] = {}
        for place, text in enumerate(texts):
            self._near.add(place, text)
            for run in _word_runs(text):
                self._runs.setdefault(hash(run), place)

    def problem(self, text: str) -> str:
        """Which test text it repeats, as a sentence; empty where it repeats none."""
        for run in _word_runs(text):
            if (place := self._runs.get(hash(run))) is not None:
                return f"Has “{' '.join(run)}” in common with row {place + 1} of the test set."
        match = self._near.nearest(text)
        if match is not None and match.share >= TEST_NEAR:
            share = round(100 * match.share)
            return f"About {share} % the same as row {match.key + 1} of the test set."
        return ""


def _word_runs(text: str) -> list[tuple[str, ...]]:
    words = re.findall(r"\w+", normalised(text))
    return [tuple(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)]
