"""Prepares a text before it is embedded, and its vector afterwards.

Some models are trained with a prefix ("query: ", "search_document: "), some give vectors whose
first numbers are a good vector by themselves (Matryoshka, Kusupati et al. 2022), and every model
has a longest text. What is cached is always the whole vector of the text as it was sent: another
truncation costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from apps.core.schemas.json_types import JsonObject, JsonValue
from apps.embeddings import arrays
from apps.embeddings.cache import Embedder, EmbedStats, Progress, embed
from apps.embeddings.errors import TextsTooLarge, TooFewDimensions
from apps.embeddings.sender import Vectors
from apps.llm import errors
from apps.llm.permits import Lane

LongTexts = Literal["reject", "cut", "mean"]
LONG_TEXTS: tuple[LongTexts, ...] = ("reject", "cut", "mean")
MAX_SPLITS = 8  # a part that is still too long is halved this often
MARGIN = 0.85  # of the length the token count suggests: tokens are not spread evenly


@dataclass(frozen=True, slots=True)
class Preparation:
    """The way texts become vectors. A classifier stores it, because it must not change."""

    prefix: str = ""
    dimensions: int = 0
    """Keep only this many numbers of each vector; 0 keeps all."""
    long_texts: LongTexts = "reject"
    """Texts too long for the model: reject, cut, or use the mean of the vectors of their parts."""

    @classmethod
    def read(cls, options: Mapping[str, JsonValue]) -> Self:
        """Read stored options; missing or unknown ones keep their default."""
        long_texts: Any = options.get("long_texts")
        dimensions: Any = options.get("dimensions") or 0
        return cls(
            prefix=str(options.get("prefix") or ""),
            dimensions=int(dimensions),
            long_texts=long_texts if long_texts in LONG_TEXTS else "reject",
        )

    def as_dict(self) -> JsonObject:
        return {
            "prefix": self.prefix,
            "dimensions": self.dimensions,
            "long_texts": self.long_texts,
        }


@dataclass(slots=True)
class PreparedVectors:
    vectors: Vectors
    """(texts, dimensions), unit length."""
    shortened: dict[int, str] = field(default_factory=dict)
    """A notice for each text that was too long, by index."""


async def embed_prepared(
    embedder: Embedder,
    texts: Sequence[str],
    preparation: Preparation = Preparation(),
    *,
    lane: Lane,
    progress: Progress | None = None,
    stats: EmbedStats | None = None,
    save_later: bool = False,
    lasting: bool = True,
) -> PreparedVectors:
    """Like `embed`, with the preparation.

    Raises:
        TextsTooLarge: with long_texts "reject", or where no part of a text fits.
        TooFewDimensions: the model gives fewer numbers than are to be kept.
        LLMError: the server failed.
    """
    sent = [preparation.prefix + text for text in texts] if preparation.prefix else texts
    shortened: dict[int, str] = {}
    try:
        vectors = await embed(
            embedder,
            sent,
            lane=lane,
            progress=progress,
            stats=stats,
            save_later=save_later,
            lasting=lasting,
        )
    except TextsTooLarge as error:
        if preparation.long_texts == "reject":
            raise
        work = _SplitTexts(sent, error, preparation)
        vectors = await work.embed(embedder, lane, stats, lasting)
        shortened = work.notices
    return PreparedVectors(truncated(vectors, preparation.dimensions), shortened)


def truncated(vectors: Vectors, dimensions: int) -> Vectors:
    """The first numbers of each vector, brought back to unit length; 0 keeps all."""
    if not dimensions or dimensions == vectors.shape[1]:
        return vectors
    if dimensions > vectors.shape[1]:
        raise TooFewDimensions(
            f"Cannot keep {dimensions:,} dimensions: the embedding model returns "
            f"{vectors.shape[1]:,}. Choose fewer, or another model."
        )
    kept = np.ascontiguousarray(vectors[:, :dimensions])
    norms = np.linalg.norm(kept, axis=1, keepdims=True)
    kept /= np.maximum(norms, np.float32(1e-12))
    return kept


class _SplitTexts:
    """Texts of which some are sent in parts."""

    def __init__(
        self, texts: Sequence[str], error: TextsTooLarge, preparation: Preparation
    ) -> None:
        self._whole = preparation.long_texts == "mean"
        self._prefix = preparation.prefix
        self._texts = texts
        self.notices: dict[int, str] = {}
        self.parts: dict[int, list[str]] = {
            place: self._pieces(texts[place], problem) for place, problem in error.problems.items()
        }

    def _pieces(self, text: str, problem: errors.LLMError) -> list[str]:
        """Split the text into pieces that should fit; only the first where it is to be cut."""
        share = 0.5
        tokens = getattr(problem, "tokens", None)
        limit = getattr(problem, "limit", None) or getattr(problem, "context", None)
        if tokens and limit:
            share = min(share, MARGIN * limit / tokens)
        pieces = split_text(text.removeprefix(self._prefix), max(1, int(len(text) * share)))
        return [self._prefix + piece for piece in (pieces if self._whole else pieces[:1])]

    async def embed(
        self, embedder: Embedder, lane: Lane, stats: EmbedStats | None, lasting: bool
    ) -> Vectors:
        for _ in range(MAX_SPLITS):
            flat: list[str] = []
            owners: list[int] = []
            for place, text in enumerate(self._texts):
                for part in self.parts.get(place, [text]):
                    flat.append(part)
                    owners.append(place)
            try:
                vectors = await embed(embedder, flat, lane=lane, stats=stats, lasting=lasting)
            except TextsTooLarge as error:
                self._split_again(flat, owners, error)
                continue
            self._add_notices()
            return self._joined(vectors, flat, owners)
        raise TextsTooLarge(
            {
                place: errors.InputTooLarge(len(self._texts[place]), 1)
                for place in sorted(self.parts)
            }
        )

    def _split_again(self, flat: list[str], owners: list[int], error: TextsTooLarge) -> None:
        again: dict[int, list[str]] = {}
        for at, (part, place) in enumerate(zip(flat, owners, strict=True)):
            if place in self.parts or at in error.problems:
                pieces = self._pieces(part, error.problems[at]) if at in error.problems else [part]
                again.setdefault(place, []).extend(pieces)
        self.parts = again

    def _add_notices(self) -> None:
        for place, parts in self.parts.items():
            kept = sum(len(part) - len(self._prefix) for part in parts)
            whole = len(self._texts[place]) - len(self._prefix)
            self.notices[place] = (
                f"Too long for the model. Embedded as the average of {len(parts)} parts."
                if self._whole
                else f"Too long for the model. Truncated to {kept:,} of {whole:,} characters."
            )

    def _joined(self, vectors: Vectors, flat: list[str], owners: list[int]) -> Vectors:
        """One unit vector per text: the mean of its parts, weighted by their length."""
        if len(flat) == len(self._texts):
            return vectors
        first = np.searchsorted(np.asarray(owners), np.arange(len(self._texts)))
        joined = arrays.take_rows(vectors, first)
        for place, parts in self.parts.items():
            at = first[place]
            lengths = np.asarray([len(part) for part in parts], dtype=np.float32)
            total = lengths @ vectors[at : at + len(parts)]
            joined[place] = total / max(float(np.linalg.norm(total)), 1e-12)
        return joined


def split_text(text: str, size: int) -> list[str]:
    """Split into pieces of at most `size` characters, at white space where there is some."""
    pieces = []
    rest = text
    while len(rest) > size:
        cut = max(rest.rfind(" ", size // 2, size + 1), rest.rfind("\n", size // 2, size + 1))
        cut = cut if cut > 0 else size
        pieces.append(rest[:cut])
        rest = rest[cut:].lstrip()
    return [piece for piece in [*pieces, rest] if piece.strip()]
