"""Answers of embedding servers, as they come and as they should not."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from apps.llm import errors
from apps.llm.vectors import decode_vectors


def coded(*numbers: float) -> str:
    return base64.b64encode(np.asarray(numbers, dtype="<f4").tobytes()).decode()


def answer(*embeddings: Any) -> bytes:
    rows = [{"index": place, "embedding": value} for place, value in enumerate(embeddings)]
    return json.dumps({"data": rows[::-1]}).encode()


@pytest.mark.parametrize("body", [answer(coded(1, 2), coded(3, 4)), answer([1, 2], [3, 4.0])])
def test_vectors_are_in_text_order_as_base64_or_numbers(body: bytes) -> None:
    vectors = decode_vectors(body, 2)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b'{"data": 1}', b'{"data": [1]}', answer("%%%"), answer("AAA=")),
        b"[" * 100_000,
        answer([10**400]),
        *(answer(None), answer({"a": 1}), answer([["nested"]]), answer([[1.0]]), answer("AAAA")),
    ],
)
def test_decode_vectors_refuses_any_other_answer(body: bytes) -> None:
    with pytest.raises(errors.ServerFailed, match="did not return a list of vectors"):
        decode_vectors(body, 1)


def test_wrong_numbers_of_vectors_are_refused() -> None:
    with pytest.raises(errors.ServerFailed, match="returned 1 vectors for 2 texts"):
        decode_vectors(answer([1.0]), 2)
    with pytest.raises(errors.ServerFailed, match="did not return a list of vectors"):
        decode_vectors(answer([1.0], [1.0, 2.0]), 2)
