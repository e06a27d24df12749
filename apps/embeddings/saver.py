"""New vectors on their way into the database, beside the work that makes them.

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

from apps.embeddings.models import Embedding, EmbeddingModel
from apps.llm import errors
from apps.runtime.async_db import in_db
from apps.runtime.bulk_insert import bulk_insert

# What a killed process loses, and the most that waits: so many vectors, or what came in so long.
SAVE_TEXTS = 512
SAVE_SECONDS = 0.1

Group = list[tuple[bytes, NDArray[np.float32]]]
"""Hashes of texts, each with its vector."""
Saved = Callable[[int], Awaitable[None]]


class OtherModel(errors.ServerFailed):
    """The vectors have another length than this model's: asking again would change nothing."""

    transient = False


class Keeper:
    """The vectors of one call, saved while `run` runs."""

    def __init__(self, fingerprint: str, name: str, saved: Saved, *, expires: date | None) -> None:
        """`saved` is awaited with how many texts have just been saved. What it raises ends it.

        `expires`: the day from which on the vectors may be deleted; None saves none.
        """
        self._fingerprint = fingerprint
        self._name = name
        self._saved = saved
        self._expires = expires
        self._model: EmbeddingModel | None = None
        self._waiting: Group = []
        self._enough = asyncio.Event()
        self.room = asyncio.Event()
        """Set while the database keeps up: what waits to be saved stays bounded."""
        self.room.set()
        self._ended = False

    def put(self, hashes: list[bytes], vectors: NDArray[np.float32]) -> None:
        self._waiting += zip(hashes, vectors, strict=True)
        if len(self._waiting) >= SAVE_TEXTS:
            self._enough.set()
            self.room.clear()

    def end(self) -> None:
        """Nothing more is put: `run` saves what is left and returns."""
        self._ended = True
        self._enough.set()

    async def run(self) -> None:
        """Saves until the end.

        Raises:
            OtherModel: vectors of this model had another length before.
        """
        try:
            while self._waiting or not self._ended:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SAVE_SECONDS):
                        await self._enough.wait()
                await self.flush(tell=True)
        finally:
            self.room.set()  # nobody is left to make any

    async def flush(self, *, tell: bool = False) -> None:
        """Saves what waits. `tell`: says so after each transaction."""
        while group := self._waiting[:SAVE_TEXTS]:
            await in_db(self._save, group)
            del self._waiting[: len(group)]
            if len(self._waiting) < SAVE_TEXTS:
                self.room.set()
                if not self._ended:
                    self._enough.clear()
            if tell:
                await self._saved(len(group))

    def _save(self, group: Group) -> None:
        if self._expires is None:
            return
        if self._model is None:
            dimensions = len(group[0][1])
            model, _ = EmbeddingModel.objects.get_or_create(
                fingerprint=self._fingerprint,
                defaults={"name": self._name, "dimensions": dimensions},
            )
            check_width(dimensions, model.dimensions)
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


def check_width(dimensions: int, before: int) -> None:
    """Raises OtherModel where vectors of two lengths were to stand for one model."""
    if dimensions != before:
        raise OtherModel(
            f"The embedding model answered with {dimensions} numbers a text and with "
            f"{before} before. Another model must be behind the same name."
        )
