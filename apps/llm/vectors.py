"""Decodes the answers of `/v1/embeddings`. Pure."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.llm import errors

NO_VECTORS = "The embedding server did not return a list of vectors."


def decode_vectors(data: bytes, count: int) -> NDArray[np.float32]:
    """Return one vector per text, in the order of the texts: (count, dimensions).

    Most servers send base64, which they were asked for; the others send lists of numbers.

    Raises:
        ServerFailed: this is not the answer to `count` texts.
    """
    try:
        rows = json.loads(data)["data"]
        ordered = sorted(rows, key=lambda row: row["index"])
        found = [_vector(row["embedding"]) for row in ordered]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise errors.ServerFailed(NO_VECTORS) from error
    if len(found) != count:
        raise errors.ServerFailed(
            f"The embedding server returned {len(found)} vectors for {count} texts."
        )
    if len({vector.shape for vector in found}) != 1 or found[0].ndim != 1:
        raise errors.ServerFailed(NO_VECTORS)
    return np.stack(found)


def _vector(value: Any) -> NDArray[np.float32]:
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    return np.asarray(value, dtype=np.float32)
