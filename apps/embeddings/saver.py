"""Saves new vectors to the database while more are being computed.

Many batches share a transaction: the server is never idle because something is being saved, and
saving costs a quarter of the CPU that a transaction for each batch would.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import date

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from apps.embeddings.errors import OtherModel
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.runtime.async_db import in_db
from apps.runtime.bulk_insert import bulk_insert

# A killed process loses at most this many vectors, or those of this time.
SAVE_TEXTS = 512
SAVE_SECONDS = 0.1

VectorBatch = list[tuple[bytes, NDArray[np.float32]]]
"""Hashes of texts, each with its vector."""
OnSaved = Callable[[int], Awaitable[None]]


class VectorSaver:
    """The vectors of one call, saved while `run` runs."""

    def __init__(
        self, fingerprint: str, name: str, on_saved: OnSaved, *, expires: date | None
    ) -> None:
        """
        Args:
            on_saved: awaited with the number of texts just saved. Its exception ends the saving.
            expires: the day from which the vectors may be deleted; None saves none.
        """
        self._fingerprint = fingerprint
        self._name = name
        self._on_saved = on_saved
        self._expires = expires
        self._model: EmbeddingModel | None = None
        self._waiting: VectorBatch = []
        self._is_full = asyncio.Event()
        self.has_room = asyncio.Event()
        """Set while the database keeps up, which bounds the vectors that wait."""
        self.has_room.set()
        self._finished = False

    def add(self, hashes: list[bytes], vectors: NDArray[np.float32]) -> None:
        self._waiting += zip(hashes, vectors, strict=True)
        if len(self._waiting) >= SAVE_TEXTS:
            self._is_full.set()
            self.has_room.clear()

    def finish(self) -> None:
        """Announce that no more vectors come: `run` saves the rest and returns."""
        self._finished = True
        self._is_full.set()

    async def run(self) -> None:
        """Save until `finish`.

        Raises:
            OtherModel: vectors of this model had another length before.
        """
        try:
            while self._waiting or not self._finished:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SAVE_SECONDS):
                        await self._is_full.wait()
                await self.flush(report=True)
        finally:
            self.has_room.set()  # no more vectors will come

    async def flush(self, *, report: bool = False) -> None:
        """Save all waiting vectors; with `report`, call `on_saved` after each transaction."""
        while group := self._waiting[:SAVE_TEXTS]:
            await in_db(self._save, group)
            del self._waiting[: len(group)]
            if len(self._waiting) < SAVE_TEXTS:
                self.has_room.set()
                if not self._finished:
                    self._is_full.clear()
            if report:
                await self._on_saved(len(group))

    def _save(self, group: VectorBatch) -> None:
        if self._expires is None:
            return
        if self._model is None:
            dimensions = len(group[0][1])
            model, _ = EmbeddingModel.objects.get_or_create(
                fingerprint=self._fingerprint,
                defaults={"name": self._name, "dimensions": dimensions},
            )
            check_dimensions(dimensions, model.dimensions)
            self._model = model
        # In one order everywhere: two runs that save the same texts never wait for each other.
        rows = [
            (self._model.pk, value, vector.astype("<f4", copy=False).tobytes(), self._expires)
            for value, vector in sorted(group, key=lambda pair: pair[0])
        ]
        with transaction.atomic():
            # Another run may have embedded the same text meanwhile.
            bulk_insert(
                Embedding,
                ("model", "text_hash", "vector", "expires"),
                rows,
                ignore_conflicts=True,
            )


def check_dimensions(dimensions: int, before: int) -> None:
    """Raise OtherModel if vectors of two lengths would stand for one model."""
    if dimensions != before:
        raise OtherModel(
            f"The embedding model now returns {dimensions} dimensions instead of {before}. "
            "The model behind this name has changed."
        )
