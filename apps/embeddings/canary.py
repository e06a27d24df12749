"""Identifies the model behind a server by two fixed texts, embedded from time to time.

A server reports the same name, size and parameters for every model of one architecture, and does
not report its pooling. So each `EmbeddingModel` keeps the vectors of
two texts: of a short one, and of a long one, which pooling and a cut context change.
"""

import hashlib
import time

import numpy as np

from apps.embeddings.models import EmbeddingModel
from apps.embeddings.sender import Vectors, embed_few
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.services import Target

TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "A parcel was sent on Monday, came on Thursday, and its box was wet. " * 4,
)
NEIGHBOURS = tuple(f"{number} {TEXTS[0]}" + " And then?" * number for number in range(16))
SAME_COSINE = 0.9999
"""Another batch changes the last digits (1e-6), another quantisation more, another model all."""
TRUSTED_SECONDS = 60.0

_checked: dict[tuple[object, ...], tuple[str, float]] = {}


async def fingerprint(
    target: Target, reported: str, *, lane: Lane, recheck: bool = False, name: str = ""
) -> str:
    """The fingerprint of the model that answers at `target` now.

    Args:
        reported: the fingerprint by the server's facts about the model.
        recheck: embed the texts now, however recent the last check is.
        name: the model's name where it was first seen, if it has another here.

    Raises:
        LLMError: the server failed.
    """
    server = target.server
    key = (server.pk, server.base_url, target.model, reported, server.facts.build)
    found, until = _checked.get(key, ("", 0.0))
    if recheck or not found or time.monotonic() >= until:
        vectors = await _vectors(target, lane)
        found = await in_db(_recognise, name or target.model, reported, vectors)
        _checked[key] = (found, time.monotonic() + TRUSTED_SECONDS)
    return found


async def batch_difference(target: Target, *, lane: Lane) -> float:
    """The largest change of a vector's numbers when other texts share its batch.

    llama.cpp with several slots computes them together, and its sums then differ: 1e-4 was seen.

    Raises:
        LLMError: the server failed.
    """
    alone, _ = await embed_few(target, NEIGHBOURS[-1:], lane=lane)
    together, _ = await embed_few(target, NEIGHBOURS, lane=lane)
    if 0 not in alone or len(NEIGHBOURS) - 1 not in together:
        return 0.0  # not even a short text fits: nothing will be embedded here
    return float(np.abs(alone[0] - together[len(NEIGHBOURS) - 1]).max())


async def _vectors(target: Target, lane: Lane) -> Vectors:
    """Vectors (2, dimensions); a long text that does not fit is replaced by the short one."""
    vectors, problems = await embed_few(target, TEXTS, lane=lane)
    if 0 in problems:
        raise problems[0]
    return np.stack([vectors[0], vectors.get(1, vectors[0])])


def clear_checked() -> None:
    """Check every model again at its next use."""
    _checked.clear()


def _recognise(name: str, reported: str, vectors: Vectors) -> str:
    """The fingerprint under which these vectors are known, or a new one.

    A model of the same name and vectors is the same one, whatever its server says of it: a router
    names the weights of a model only while it is loaded.
    """
    dimensions = vectors.shape[1]
    canary = vectors.astype("<f4").tobytes()
    unseen = EmbeddingModel.objects.filter(fingerprint=reported, canary=None, dimensions=dimensions)
    if unseen.update(canary=canary):  # from before models had one
        return reported
    known = EmbeddingModel.objects.filter(name=name, dimensions=dimensions).exclude(canary=None)
    # First as the server tells it: classifiers of two servers of one model keep theirs.
    for model in sorted(known.order_by("pk"), key=lambda model: model.fingerprint != reported):
        if _same(vectors, model):
            return model.fingerprint
    taken = EmbeddingModel.objects.filter(fingerprint=reported).exists()
    changed = hashlib.sha256(reported.encode() + canary).hexdigest()
    model, _ = EmbeddingModel.objects.get_or_create(
        fingerprint=changed if taken else reported,
        defaults={"name": name, "dimensions": dimensions, "canary": canary},
    )
    return model.fingerprint


def _same(vectors: Vectors, model: EmbeddingModel) -> bool:
    assert model.canary is not None
    before = np.frombuffer(model.canary, dtype="<f4").reshape(len(TEXTS), model.dimensions)
    return bool((np.sum(vectors * before, axis=1) >= SAME_COSINE).all())
