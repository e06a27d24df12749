"""Texts that are nearly the same, and texts that repeat a test set (pure).

Near duplicates: MinHash (Broder 1997, "On the resemblance and containment of documents") over
character 5-grams of the normalised text, found through locality-sensitive hashing in bands
(Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4). A signature has 256 bytes and
is kept with the row: 100,000 texts take 40 MB of memory and are there again within a second.

Contamination: eight words in a row that also stand in a test text, the overlap that Brown et al.
2020 (GPT-3, appendix C) and later work look for, all of a test text of four to seven words, or a
near duplicate of a test text. Scripts without spaces between words (Chinese, Japanese, Thai and
others) count characters instead: thirteen are about as much as eight words.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHINGLE = 5  # characters
HASHES = 128
# From a threshold on: (bands, hashes of a band). A pair with as much in common shares a band with
# 98 % at least; what has less in common is seldom compared at all.
BANDINGS = ((0.8, (8, 4)), (0.7, (16, 4)), (0.6, (32, 4)), (0.5, (30, 3)), (0.0, (64, 2)))
BUCKET = 8  # how many texts of one bucket are compared
LATEST = 2_000
WORDS = 8
LETTERS, FEWEST_LETTERS = 13, 6
FEWEST_WORDS = 4  # “Where is my card?” in a longer text repeats it; “Thank you” repeats nothing
TEST_NEAR = 0.8

Signature = NDArray[np.uint16]

# Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = re.compile(
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0edf\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)

_random = np.random.default_rng(20260101)
_multipliers = _random.integers(1, 2**63, size=HASHES, dtype=np.uint64) | np.uint64(1)
_offsets = _random.integers(0, 2**63, size=HASHES, dtype=np.uint64)
_powers = np.cumprod(np.full(SHINGLE, 1_000_003, dtype=np.uint64))
_band_weights = _random.integers(1, 2**63, size=4, dtype=np.uint64) | np.uint64(1)


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


def signature_of(text: str) -> Signature | None:
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
    """Texts by their signatures.

    The band values of most texts lie sorted in arrays (8 bytes each), those of the latest in
    dictionaries, which are sorted in when they have become a fifth of all.
    """

    def __init__(self, threshold: float = TEST_NEAR) -> None:
        """
        Args:
            threshold: what is looked for has this share in common, or more.
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

    def nearest(self, text: str) -> Match | None:
        """The most similar text, of those worth comparing."""
        signature = signature_of(text)
        return None if signature is None else self.nearest_to(signature)

    def nearest_to(self, signature: Signature, *, but: int = -1) -> Match | None:
        """As `nearest`; `but` is a key that does not count."""
        at = np.array(sorted(self._alike(signature)), dtype=np.int64)
        at = at[self._keys[at] != but]
        if not len(at):
            return None
        shares = (self._signatures[at] == signature).mean(axis=1)
        best = int(shares.argmax())
        return Match(int(self._keys[at[best]]), float(shares[best]))

    def add(self, key: int, text: str) -> None:
        signature = signature_of(text)
        if signature is not None:
            self._add(key, signature)

    def add_many(self, keys: Sequence[int], signatures: NDArray[np.uint16]) -> None:
        """Texts whose signatures were kept: (len(keys), HASHES)."""
        end = self._count + len(keys)
        self._grow(end)
        self._keys[self._count : end] = keys
        self._signatures[self._count : end] = signatures
        self._count = end
        self._sort_in()

    def check_and_add(self, key: int, signature: Signature, threshold: float) -> Match | None:
        """The text that this one nearly repeats; else it is added.

        In one step, so that of two twins in flight at once the second is found.
        """
        match = self.nearest_to(signature, but=key)
        if match is not None and match.share >= threshold:
            return match
        self._add(key, signature)
        return None

    def _alike(self, signature: Signature) -> set[int]:
        """The places of texts that share a band."""
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
            self._sort_in()

    def _grow(self, size: int) -> None:
        there = len(self._keys)
        if size > there:
            more = max(size, there + there // 2) - there
            self._signatures = np.pad(self._signatures, ((0, more), (0, 0)))
            self._keys = np.pad(self._keys, (0, more))

    def _sort_in(self) -> None:
        values = np.empty((self._bands, self._count), dtype=np.uint32)
        for start in range(0, self._count, 10_000):  # in pieces: memory stays small
            end = min(start + 10_000, self._count)
            values[:, start:end] = self._band_values(self._signatures[start:end]).T
        self._places = values.argsort(axis=1, kind="stable").astype(np.uint32)
        self._values = np.take_along_axis(values, self._places.astype(np.int64), axis=1)
        self._latest = [{} for _ in range(self._bands)]

    def _band_values(self, signatures: NDArray[np.uint16]) -> NDArray[np.uint32]:
        """(texts, bands); different rows of a band may share one, which a comparison finds out."""
        bands, rows = self._bands, self._rows
        parts = signatures[:, : bands * rows].reshape(-1, bands, rows).astype(np.uint64)
        mixed = (parts * _band_weights[:rows]).sum(axis=2, dtype=np.uint64)
        values: NDArray[np.uint32] = (mixed >> np.uint64(32)).astype(np.uint32)
        return values


def similarity(first: str, second: str) -> float:
    """The exact share of 5-grams two texts have in common (Jaccard), 0 to 1."""
    one, two = shingles(first), shingles(second)
    union = len(np.union1d(one, two))
    return len(np.intersect1d(one, two)) / union if union else 1.0


class _Runs:
    """The runs of units (words or characters) that stand in some texts."""

    def __init__(self, length: int, fewest: int, between: str) -> None:
        """
        Args:
            length: of a run that is a repetition.
            fewest: a shorter text is one in whole, from so many units on.
            between: what stands between two units.
        """
        self._length, self._fewest, self._between = length, fewest, between
        self._known: dict[int, int] = {}
        self._lengths = {length}

    def add(self, place: int, units: Sequence[str]) -> None:
        length = min(self._length, len(units))
        if length >= self._fewest:
            self._lengths.add(length)
            for run in _runs(units, length):
                self._known.setdefault(hash(run), place)

    def find(self, units: Sequence[str]) -> tuple[str, int] | None:
        """A run that is known, as a text, and the place of the text it was first seen in."""
        for length in sorted(self._lengths, reverse=True):
            for run in _runs(units, length):
                if (place := self._known.get(hash(run))) is not None:
                    return self._between.join(run), place
        return None


class TestSet:
    """What must not be repeated: real texts on which something will be judged later."""

    __test__ = False  # no test of pytest's

    def __init__(self, texts: Iterable[str]) -> None:
        self._near = NearDuplicates()
        self._words = _Runs(WORDS, FEWEST_WORDS, " ")
        self._letters = _Runs(LETTERS, FEWEST_LETTERS, "")
        for place, text in enumerate(texts):
            self._near.add(place, text)
            self._words.add(place, words_of(text))
            self._letters.add(place, letters_of(text))

    def problem(self, text: str) -> str:
        """Which test text it repeats, as a sentence; empty where it repeats none."""
        found = self._words.find(words_of(text)) or self._letters.find(letters_of(text))
        if found is not None:
            said, place = found
            return f"Shares “{said}” with row {place + 1} of the test set."
        match = self._near.nearest(text)
        if match is not None and match.share >= TEST_NEAR:
            share = round(100 * match.share)
            return f"About {share}% similar to row {match.key + 1} of the test set."
        return ""


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", normalised(text))


def letters_of(text: str) -> list[str]:
    """The characters of scripts that put no space between words."""
    return _UNSPACED.findall(normalised(text))


def has_words(texts: Iterable[str]) -> bool:
    """Whether what stands between two spaces is mostly a word, as it is not in Chinese or Thai."""
    joined = " ".join(texts)[:200_000]
    return 2 * len(_UNSPACED.findall(joined)) <= sum(map(str.isalpha, joined))


def _runs(units: Sequence[str], length: int) -> Iterable[tuple[str, ...]]:
    return (tuple(units[at : at + length]) for at in range(len(units) - length + 1))
