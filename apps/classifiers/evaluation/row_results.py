"""Row-level results of a run, stored next to its classifier as plain arrays.

Each row with its label and the prediction of a model that had not seen it. Thresholds, comparisons
of versions, the map and tests of chat models read them.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation.calibration import softmax
from apps.runtime.atomic_file import write_atomically

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

CHUNK = 20_000
SIDES = ("train", "test", "out_of_scope", "unlabelled")
# Names of arrays in the file that differ from those of the fields.
STORED_NAMES = {"out_of_scope": "strange", "label_probability": "given", "familiarity": "familiar"}
MAX_BYTES = 2**32


@dataclass(frozen=True, slots=True)
class _Scores:
    """What logits say of each row, see `PredictedRows`."""

    predicted: NDArray[np.int32]
    confidence: Floats
    label_probability: Floats
    margin: Floats
    max_logit: Floats

    @classmethod
    def zeros(cls, count: int) -> Self:
        numbers = (np.zeros(count, dtype=np.float32) for _ in range(4))
        return cls(np.zeros(count, dtype=np.int32), *numbers)

    def fill(
        self, part: slice, logits: Floats, truth: Codes, temperature: float, favour: Floats | None
    ) -> None:
        """Compute the part of the rows that these logits (n, labels) and labels (n,) are of."""
        rows = np.arange(len(logits))
        probabilities = softmax(logits, temperature)
        favoured = logits if favour is None else logits + favour
        chances = probabilities if favour is None else softmax(favoured, temperature)
        two = np.partition(chances, -2, axis=1)[:, -2:]
        chosen = favoured.argmax(axis=1)
        self.predicted[part] = chosen
        self.confidence[part] = probabilities[rows, chosen]
        self.label_probability[part] = np.where(truth >= 0, probabilities[rows, truth], 0)
        self.margin[part] = two[:, 1] - two[:, 0]
        self.max_logit[part] = logits.max(axis=1)


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """Rows of one kind. Predictions are by a model that had not seen the row; all are (n,)."""

    index: NDArray[np.int64]
    """Its place in its dataset ..."""
    source: NDArray[np.int8]
    """... which is 0 for the one trained on, 1 for the test set."""
    key: NDArray[np.uint64]
    truth: NDArray[np.int32]
    """Its label's number; -1 without one."""
    predicted: NDArray[np.int32]
    confidence: Floats
    label_probability: Floats
    """Probability of the label it has; 0 without one."""
    margin: Floats
    """How far the label it gives is ahead of the second, in probability; by the weighed ones where
    labels are weighed."""
    max_logit: Floats
    familiarity: Floats
    """See `familiarity`; the largest logit in runs that kept no sample of their texts."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def correct(self) -> NDArray[np.bool_]:
        correct: NDArray[np.bool_] = self.predicted == self.truth
        return correct

    @classmethod
    def from_logits(
        cls,
        *,
        index: Sequence[int],
        source: Sequence[int],
        keys: Sequence[int],
        truth: Codes,
        logits: Floats,
        temperature: float,
        favour: Floats | None = None,
        familiarity: Floats | None = None,
    ) -> Self:
        """Args:
        favour: (labels,) added to the logits before the largest is chosen, not for probabilities.
        familiarity: (n,); None where only the largest logit is known.
        """
        count = len(index)
        scores = _Scores.zeros(count)
        for start in range(0, count, CHUNK):
            part = slice(start, start + CHUNK)
            scores.fill(part, logits[part], truth[part], temperature, favour)
        return cls(
            index=np.asarray(index, dtype=np.int64),
            source=np.asarray(source, dtype=np.int8),
            key=np.asarray(keys, dtype=np.uint64),
            truth=truth.astype(np.int32),
            predicted=scores.predicted,
            confidence=scores.confidence,
            label_probability=scores.label_probability,
            margin=scores.margin,
            max_logit=scores.max_logit,
            familiarity=scores.max_logit if familiarity is None else familiarity,
        )


@dataclass(frozen=True, slots=True)
class MapPoints:
    """Points on a plane: see `mapping`."""

    points: Floats = field(default_factory=lambda: np.zeros((0, 2), dtype=np.float32))
    side: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    """Which of SIDES ..."""
    row: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """... and which row of it."""
    explained: Floats = field(default_factory=lambda: np.zeros(2, dtype=np.float32))
    """The share of all variance that each direction shows; empty where UMAP placed them."""


@dataclass(frozen=True, slots=True)
class RowResults:
    train: PredictedRows
    test: PredictedRows
    out_of_scope: PredictedRows
    """Out-of-scope rows."""
    unlabelled: PredictedRows
    map: MapPoints

    def side(self, name: str) -> PredictedRows:
        side = getattr(self, name)
        assert isinstance(side, PredictedRows)
        return side


def save(folder: Path, name: str, results: RowResults) -> None:
    arrays: dict[str, NDArray[np.generic]] = {}
    for part in (*SIDES, "map"):
        group = getattr(results, part)
        arrays |= {_key(part, entry.name): getattr(group, entry.name) for entry in fields(group)}
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]  # names are ours
    write_atomically(_path(folder, name), data.getvalue())


def _key(part: str, field_name: str) -> str:
    return f"{STORED_NAMES.get(part, part)}.{STORED_NAMES.get(field_name, field_name)}"


def remove(folder: Path, name: str) -> None:
    _path(folder, name).unlink(missing_ok=True)


@lru_cache(maxsize=8)
def load(folder: Path, name: str) -> RowResults:
    """Raises:
    NoRowResults: it is not there or damaged.
    """
    try:
        with zipfile.ZipFile(_path(folder, name)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise NoRowResults("The row-level results of this run are too large to show.")
        with np.load(_path(folder, name), allow_pickle=False) as arrays:
            sides = {part: _read_rows(arrays, part) for part in SIDES}
            points = MapPoints(
                **{entry.name: arrays[f"map.{entry.name}"] for entry in fields(MapPoints)}
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise NoRowResults(
            "The row-level results of this run are not on this machine. Train again to create them."
        ) from error
    return RowResults(**sides, map=points)


def _read_rows(arrays: Mapping[str, Any], part: str) -> PredictedRows:
    keys = {entry.name: _key(part, entry.name) for entry in fields(PredictedRows)}
    if keys["familiarity"] not in arrays:  # written before familiarity: the largest logit decides
        keys["familiarity"] = keys["max_logit"]
    return PredictedRows(**{name: arrays[key] for name, key in keys.items()})


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.rows.npz"
