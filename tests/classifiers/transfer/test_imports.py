"""Files somebody sent: any bytes are refused or read, and none of them runs."""

import base64
import io
import json
import pickle  # noqa: TID251 - what must be refused
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.errors import BadFile
from apps.classifiers.transfer import imports
from apps.classifiers.transfer.exports import FORMAT

WEIGHTS, BIAS = np.ones((2, 3), dtype="<f4"), np.zeros(2, dtype="<f4")


def stored(array: Any) -> dict[str, Any]:
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": "<f4", "shape": list(array.shape), "base64": data}


def card(**changed: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": "Topics",
        "labels": ["card", "rate"],
        "dimensions": 3,
        "temperature": 1.5,
        "embedding_model": "mini",
        "embedding_fingerprint": "abc",
        "preparation": {},
        "gates": {"unsure": 0.5, "kept": 0.99, "max_logit": None},
        "metrics": {"accuracy": 0.9, "rows": 10, "majority_label": "card"},
        "trained_on": {"rows": 40},
        "arrays": {"weights": stored(WEIGHTS), "bias": stored(BIAS)},
    } | changed


def as_file(**changed: Any) -> bytes:
    return json.dumps(card(**changed)).encode()


def as_npz(**changed: Any) -> bytes:
    out = io.BytesIO()
    described = np.frombuffer(as_file(**changed), dtype=np.uint8)
    np.savez(out, weights=WEIGHTS, bias=BIAS, card=described)
    return out.getvalue()


@pytest.mark.parametrize("data", [as_file(), as_npz()])
def test_read_gives_the_classifier_and_what_is_displayed(data: bytes) -> None:
    found, shown = imports.read(data)
    assert found.card.labels == ["card", "rate"]
    assert found.weights.tolist() == WEIGHTS.tolist()
    assert (shown["name"], shown["train_rows"]) == ("Topics", 40)
    assert shown["metrics"] == {"accuracy": 0.9, "rows": 10, "majority_label": "card"}
    assert shown["gates"] == {"unsure": 0.5, "kept": 0.99}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"format": "other/1"}, "not a classifier exported"),
        ({"labels": ["card"]}, "2 to 100,000 labels"),
        ({"labels": ["card", ""]}, "empty or longer"),
        ({"labels": ["card", "card"]}, "damaged"),
        ({"labels": "card"}, "2 to 100,000 labels"),
        ({"dimensions": 3.0}, "dimensions is not valid"),
        ({"dimensions": 4}, "not as described"),
        ({"embedding_model": 7}, "embedding model is not valid"),
        ({"embedding_fingerprint": "x" * 301}, "embedding model is not valid"),
        ({"temperature": 0}, "damaged"),
        ({"temperature": "warm"}, "damaged"),
        ({"arrays": {}}, "damaged"),
        ({"favour": [1.0]}, "favoured labels are damaged"),
        ({"preparation": 7}, "damaged"),
    ],
)
def test_read_refuses_a_card_that_is_wrong(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(BadFile, match=says):
        imports.read(as_file(**changed))


@pytest.mark.parametrize(
    "weights",
    [
        stored(WEIGHTS) | {"base64": "!"},
        stored(WEIGHTS) | {"shape": [2, 4]},
        stored(WEIGHTS) | {"shape": [0, 3]},
        stored(WEIGHTS) | {"dtype": "<f8"},
    ],
)
def test_read_refuses_arrays_that_are_not_as_described(weights: dict[str, Any]) -> None:
    with pytest.raises(BadFile):
        imports.read(as_file(arrays={"weights": weights, "bias": stored(BIAS)}))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_read_refuses_weights_that_are_no_numbers(value: float) -> None:
    weights = WEIGHTS.copy()
    weights[0, 0] = value
    with pytest.raises(BadFile, match="not as described"):
        imports.read(as_file(arrays={"weights": stored(weights), "bias": stored(BIAS)}))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_read_never_opens_a_pickle(protocol: int) -> None:
    with pytest.raises(BadFile, match="pickle"):
        imports.read(pickle.dumps({"labels": []}, protocol=protocol))


@given(st.binary(max_size=300))
def test_read_refuses_any_other_bytes(data: bytes) -> None:
    with pytest.raises(BadFile):
        imports.read(data)


@given(st.integers(0, 400), st.integers(0, 255))
def test_read_survives_a_changed_byte(place: int, value: int) -> None:
    data = bytearray(as_npz())
    data[place % len(data)] = value
    try:
        found, _ = imports.read(bytes(data))
    except BadFile:
        return
    assert found.weights.shape == (2, 3)


@pytest.mark.parametrize(
    ("changed", "field", "shown"),
    [
        ({"name": None}, "name", "Imported classifier"),
        ({"name": "x" * 300}, "name", "x" * 200),
        ({"gates": "open"}, "gates", {}),
        ({"gates": {"unsure": True, "kept": "0.9"}}, "gates", {}),
        ({"gates": {"labels": {"a": 0.9}}}, "gates", {"labels": {"a": 0.9}}),
        ({"gates": {"labels": {"a": "high"}}}, "gates", {}),
        ({"metrics": []}, "metrics", {}),
        ({"metrics": {"accuracy": "high", "other": 1}}, "metrics", {"majority_label": ""}),
        ({"trained_on": {"rows": -1}}, "train_rows", 0),
        ({"trained_on": None}, "train_rows", 0),
    ],
)
def test_read_leaves_out_displayed_fields_of_the_wrong_type(
    changed: dict[str, Any], field: str, shown: Any
) -> None:
    assert imports.read(as_file(**changed))[1][field] == shown


def test_check_size_refuses_large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MOST_BYTES", 1024**2)
    imports.check_size(1024**2)
    with pytest.raises(BadFile, match="limit of 1 MB"):
        imports.check_size(1024**2 + 1)
