"""Files of classifiers that were damaged or made up: each is read, or refused with a message."""

import io
import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.errors import BadFile
from apps.classifiers.transfer import imports
from tests.classifiers.transfer.test_imports import as_file, card, stored

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(max_size=5)
    | st.just(float("inf")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
FIELDS = sorted(card())
COMPRESSED = io.BytesIO()
np.savez_compressed(
    COMPRESSED,
    weights=np.eye(2, 3, dtype=np.float32),
    bias=np.zeros(2, dtype=np.float32),
    card=np.frombuffer(json.dumps(card()).encode(), dtype=np.uint8),
)


def read_or_refuse(data: bytes) -> None:
    with suppress(BadFile):
        imports.read(data)


@given(st.sampled_from(FIELDS), VALUES)
def test_a_card_with_any_value_in_a_field_is_read_or_refused(field: str, value: Any) -> None:
    read_or_refuse(as_file(**{field: value}))


@given(st.sampled_from(["weights", "bias"]), st.sampled_from(["shape", "dtype", "base64"]), VALUES)
def test_arrays_with_any_description_are_read_or_refused(name: str, part: str, value: Any) -> None:
    arrays = {
        "weights": stored(np.eye(2, 3, dtype=np.float32)),
        "bias": stored(np.zeros(2, dtype=np.float32)),
    }
    arrays[name][part] = value
    read_or_refuse(as_file(arrays=arrays))


@given(st.integers(0, len(COMPRESSED.getvalue()) - 1), st.integers(0, 255))
def test_a_compressed_file_with_a_changed_byte_is_read_or_refused(place: int, value: int) -> None:
    data = bytearray(COMPRESSED.getvalue())
    data[place] = value
    read_or_refuse(bytes(data))


@given(st.integers(0, len(COMPRESSED.getvalue()) - 1))
def test_a_file_that_was_cut_off_is_refused(length: int) -> None:
    with pytest.raises(BadFile):
        imports.read(COMPRESSED.getvalue()[:length])


@pytest.mark.parametrize("marker", [b"PK\x03\x04", b"PK\x01\x02"])
def test_a_locked_archive_is_refused(marker: bytes) -> None:
    """The flag of encryption, in the headers of every entry or in the directory alone."""
    data = bytearray(COMPRESSED.getvalue())
    flag = 6 if marker == b"PK\x03\x04" else 8
    place = data.find(marker)
    while place >= 0:
        data[place + flag] |= 1
        place = data.find(marker, place + 1)
    read_or_refuse(bytes(data))


@pytest.mark.parametrize(
    "temperature",
    [
        pytest.param(10**400, id="huge"),
        pytest.param(-(10**400), id="huge and negative"),
        *("hot", [], None, 0, -1),
    ],
)
def test_an_impossible_temperature_is_refused(temperature: Any) -> None:
    with pytest.raises(BadFile):
        imports.read(as_file(temperature=temperature))


@pytest.mark.parametrize(
    "shape",
    [pytest.param([10**400, 3], id="huge"), [float("inf"), 3], [], [2], [2, 3, 1], 6],
)
def test_an_impossible_shape_is_refused(shape: Any) -> None:
    weights = stored(np.eye(2, 3, dtype=np.float32)) | {"shape": shape}
    arrays = {"weights": weights, "bias": stored(np.zeros(2, dtype=np.float32))}
    with pytest.raises(BadFile):
        imports.read(as_file(arrays=arrays))
