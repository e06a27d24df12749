import io
import json
import stat
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from apps.classifiers.errors import BadArtefact
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.predictor import ModelCard, Predictor

CARD = ModelCard(["zebra", "apple", "mango"], 4, 2.0, "model", "fingerprint")
PREDICTOR = Predictor(
    CARD, np.eye(3, 4, dtype=np.float32) * 8, np.asarray([0, 0, 0], dtype=np.float32)
)


def npz(**arrays: object) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def test_a_round_trip_changes_nothing(tmp_path: Path) -> None:
    predictor_file.save(tmp_path / "new", "run-1", PREDICTOR)
    loaded = predictor_file.load(tmp_path / "new", "run-1")
    assert loaded.card == CARD
    assert np.array_equal(loaded.weights, PREDICTOR.weights)
    for file in (tmp_path / "new").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["run-1.json", "run-1.npz"]


def test_labels_are_those_of_their_columns() -> None:
    """In the order they were given, whatever the alphabet says."""
    vectors = np.eye(3, 4, dtype=np.float32)
    top = PREDICTOR.top(vectors)
    assert [ranked[0].label for ranked in top] == ["zebra", "apple", "mango"]
    probabilities = PREDICTOR.probabilities(vectors)
    assert np.allclose(probabilities.sum(axis=1), 1)
    for row, ranked in zip(probabilities, top, strict=True):
        assert {r.label: r.confidence for r in ranked} == pytest.approx(
            dict(zip(CARD.labels, row.tolist(), strict=True))
        )


def test_temperature_is_applied() -> None:
    expected = np.exp(4) / (np.exp(4) + 2)
    confidence = PREDICTOR.top(np.eye(1, 4, dtype=np.float32))[0][0].confidence
    assert confidence == pytest.approx(expected, rel=1e-5)


def test_a_favoured_label_comes_first_with_its_own_probability(tmp_path: Path) -> None:
    favoured = Predictor(replace(CARD, favour=[0.0, 9.0, 0.0]), PREDICTOR.weights, PREDICTOR.bias)
    predictor_file.save(tmp_path, "run-2", favoured)
    vector = np.eye(1, 4, dtype=np.float32)
    (top,) = predictor_file.load(tmp_path, "run-2").top(vector)
    assert [ranked.label for ranked in top] == ["apple", "zebra", "mango"]
    plain = {ranked.label: ranked.confidence for ranked in PREDICTOR.top(vector)[0]}
    assert {ranked.label: ranked.confidence for ranked in top} == plain


def test_vectors_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="4 numbers, these have 5"):
        PREDICTOR.probabilities(np.ones((1, 5), dtype=np.float32))


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("run",))


GOOD = asdict(CARD)


@pytest.mark.parametrize(
    ("data", "card"),
    [
        (npz(weights=np.asarray([Evil()], dtype=object), bias=PREDICTOR.bias), GOOD),
        (npz(weights=np.eye(3, 4), bias=PREDICTOR.bias), GOOD),  # float64
        (npz(weights=np.eye(3, 5, dtype=np.float32), bias=PREDICTOR.bias), GOOD),
        (npz(weights=PREDICTOR.weights, bias=np.ones(4, dtype=np.float32)), GOOD),
        (npz(weights=PREDICTOR.weights * np.nan, bias=PREDICTOR.bias), GOOD),
        (npz(weights=PREDICTOR.weights), GOOD),
        (npz(weights=PREDICTOR.weights, bias=PREDICTOR.bias, more=PREDICTOR.bias), GOOD),
        (b"not a zip", GOOD),
        (npz(weights=PREDICTOR.weights, bias=PREDICTOR.bias)[:-30], GOOD),
        (npz(weights=PREDICTOR.weights, bias=PREDICTOR.bias), GOOD | {"temperature": 0.0}),
        (npz(weights=PREDICTOR.weights, bias=PREDICTOR.bias), GOOD | {"labels": ["a", "a", "b"]}),
        (npz(weights=PREDICTOR.weights, bias=PREDICTOR.bias), GOOD | {"dimensions": 10**9}),
        (npz(weights=PREDICTOR.weights, bias=PREDICTOR.bias), GOOD | {"labels": [1, 2, 3]}),
    ],
)
def test_a_crafted_file_is_refused(
    data: bytes, card: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadArtefact):
        predictor_file.parse(data, card)
    assert capsys.readouterr().out == ""


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    predictor_file.save(tmp_path, "run-2", PREDICTOR)
    (tmp_path / "run-2.npz").write_bytes(npz(weights=PREDICTOR.weights * 2, bias=PREDICTOR.bias))
    with pytest.raises(BadArtefact, match="modified"):
        predictor_file.load(tmp_path, "run-2")


@pytest.mark.parametrize("description", ["", "[]", "{}", json.dumps(GOOD)])
def test_a_damaged_description_is_refused(tmp_path: Path, description: str) -> None:
    predictor_file.save(tmp_path, "run-3", PREDICTOR)
    (tmp_path / "run-3.json").write_text(description)
    with pytest.raises(BadArtefact):
        predictor_file.load(tmp_path, "run-3")


def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadArtefact, match="not on this machine"):
        predictor_file.load(tmp_path, "run-4")


def test_removed_is_removed(tmp_path: Path) -> None:
    predictor_file.save(tmp_path, "run-5", PREDICTOR)
    predictor_file.remove(tmp_path, "run-5")
    assert list(tmp_path.iterdir()) == []
