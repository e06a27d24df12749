"""The answer of `/v1/embeddings`, read."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.llm import errors

NO_VECTORS = "The embedding server did not return a list of vectors."


def vectors_of(data: bytes, count: int) -> NDArray[np.float32]:
    """One vector a text, in the order of the texts: (count, dimensions).

    Servers that know base64 send it, as they were asked to; the others send lists of numbers.

    Raises:
        ServerFailed: it is not the answer to `count` texts.
    """
    try:
        rows = json.loads(data)["data"]
        ordered = sorted(rows, key=lambda row: row["index"])
        found = [_vector(row["embedding"]) for row in ordered]
    except (ValueError, TypeError, KeyError) as error:
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
