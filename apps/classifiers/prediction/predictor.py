"""A trained classifier at work: numpy alone, read from two files that cannot run code.

`<run>.npz` holds the arrays, `<run>.json` what they mean. The JSON is written last and names the
hash of the arrays: without it, or with another hash, there is no classifier.
"""

import hashlib
import io
import json
import math
import zipfile
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.errors import BadArtefact
from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.evaluation.familiarity import Familiarity
from apps.runtime.atomic_file import write_atomically

Floats = NDArray[np.float32]
MAX_LABELS = 100_000
MAX_DIMENSIONS = 100_000
MAX_BYTES = 2**31


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What the arrays mean."""

    labels: list[str]
    dimensions: int
    temperature: float
    embedding_model: str
    embedding_fingerprint: str
    preparation: dict[str, Any] = field(default_factory=dict)
    """How texts become vectors: see `embeddings.preparation.Preparation`."""
    favour: list[float] = field(default_factory=list)
    """Of each label, added to its logit before the largest is chosen, not for probabilities: rare
    labels that are weighed like common ones. Empty where none is favoured."""
    familiarity: dict[str, float] = field(default_factory=dict)
    """What `Familiarity` holds besides its sample; empty where there is none."""


@dataclass(frozen=True, slots=True)
class RankedLabel:
    label: str
    confidence: float


@dataclass(frozen=True, slots=True)
class TextScores:
    """Of one text: its labels, best first, and how much it is like any at all."""

    top: list[RankedLabel]
    """The label it gives comes first, also where a favoured one is given that is less likely."""
    max_logit: float
    score: float
    """What the second gate looks at: the familiarity, or the largest logit where that is all."""


@dataclass(frozen=True, slots=True)
class Predictor:
    card: ModelCard
    weights: Floats
    bias: Floats
    familiarity: Familiarity | None = None
    """None in runs from before it was kept, and in imported ones."""

    def logits(self, vectors: Floats) -> Floats:
        """One column per label in the order of `card.labels`: (n, labels).

        Raises:
            ValueError: the vectors have another width than those it was trained on.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.card.dimensions:
            raise ValueError(
                f"The classifier was trained on vectors of {self.card.dimensions} numbers, "
                f"these have {vectors.shape[-1]}."
            )
        return vectors @ self.weights.T + self.bias

    def probabilities(self, vectors: Floats) -> Floats:
        """Calibrated: (n, labels)."""
        return softmax(self.logits(vectors), self.card.temperature)

    def score_texts(self, vectors: Floats, *, count: int = 3) -> list[TextScores]:
        """The labels of each vector with their probability, best first."""
        logits = self.logits(vectors)
        largest = logits.max(axis=1)
        familiar = largest if self.familiarity is None else self.familiarity.score(vectors, largest)
        probabilities = softmax(logits, self.card.temperature)
        count = min(count, len(self.card.labels))
        scores = logits
        if self.card.favour:
            scores = logits + np.asarray(self.card.favour, dtype=np.float32)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        return [
            TextScores(
                [RankedLabel(self.card.labels[at], float(row[at])) for at in places], *scores_of
            )
            for row, places, *scores_of in zip(
                probabilities, order, largest.tolist(), familiar.tolist(), strict=True
            )
        ]

    def top(self, vectors: Floats, *, count: int = 3) -> list[list[RankedLabel]]:
        return [judgement.top for judgement in self.score_texts(vectors, count=count)]


def save(folder: Path, name: str, predictor: Predictor) -> None:
    """Writes both files so that a reader sees either a whole classifier or none."""
    arrays = io.BytesIO()
    found = {"weights": predictor.weights, "bias": predictor.bias}
    if predictor.familiarity is not None:
        found["sample"] = predictor.familiarity.sample.astype(np.float16)
    np.savez(arrays, **found)  # type: ignore[arg-type]  # names are ours
    card = asdict(predictor.card) | {"sha256": hashlib.sha256(arrays.getvalue()).hexdigest()}
    write_atomically(folder / f"{name}.npz", arrays.getvalue())
    write_atomically(folder / f"{name}.json", json.dumps(card, ensure_ascii=False).encode())


def remove(folder: Path, name: str) -> None:
    for suffix in ("json", "npz"):
        (folder / f"{name}.{suffix}").unlink(missing_ok=True)


@lru_cache(maxsize=16)
def load(folder: Path, name: str) -> Predictor:
    """The classifier of that name, kept in memory afterwards: a run never changes.

    Raises:
        BadArtefact: it is not there, or not as it was written.
    """
    try:
        stored = json.loads((folder / f"{name}.json").read_bytes())
        data = (folder / f"{name}.npz").read_bytes()
    except (OSError, ValueError) as error:
        raise BadArtefact("The classifier file is not on this machine. Train again.") from error
    try:
        if hashlib.sha256(data).hexdigest() != stored.pop("sha256"):
            raise BadArtefact("The classifier file has been modified. Train again.")
        return parse(data, stored)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadArtefact("The classifier’s description is damaged. Train again.") from error


def parse(data: bytes, stored: dict[str, Any]) -> Predictor:
    """Arrays and description, each checked before it is used.

    Raises:
        BadArtefact: a shape, a type or a size is not what the description says.
    """
    card = ModelCard(**stored)
    labels, dimensions = len(card.labels), card.dimensions
    if not (2 <= labels <= MAX_LABELS and 1 <= dimensions <= MAX_DIMENSIONS):
        raise BadArtefact("The trained classifier has an impossible size.")
    if not all(isinstance(label, str) for label in card.labels) or len(set(card.labels)) != labels:
        raise BadArtefact("The trained classifier's labels are damaged.")
    if not isinstance(card.preparation, dict):
        raise BadArtefact("The trained classifier's preparation is damaged.")
    if not (isinstance(card.temperature, float) and 0 < card.temperature < 1e6):
        raise BadArtefact("The trained classifier's temperature is damaged.")
    favour = card.favour
    if not isinstance(favour, list) or len(favour) not in {0, labels}:
        raise BadArtefact("The trained classifier's favoured labels are damaged.")
    if not all(isinstance(value, float) and math.isfinite(value) for value in favour):
        raise BadArtefact("The trained classifier's favoured labels are damaged.")
    shapes = {"weights": (labels, dimensions), "bias": (labels,)}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # Looked at before anything is unpacked: a small archive may hold a huge array.
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise BadArtefact("The trained classifier's file is too large.")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            if set(arrays.files) - {"sample"} != set(shapes):
                raise BadArtefact("The classifier file has unexpected arrays. Train again.")
            found = {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise BadArtefact("The trained classifier's file is damaged. Train again.") from error
    for name, shape in shapes.items():
        array = found[name]
        if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
            raise BadArtefact(f"The trained classifier's {name} are not as described.")
    return Predictor(card, found["weights"], found["bias"], _familiarity(card, found.get("sample")))


def _familiarity(card: ModelCard, sample: NDArray[np.float16] | None) -> Familiarity | None:
    if sample is None:
        return None
    problem = BadArtefact("The trained classifier's sample of texts is not as described.")
    if sample.dtype != np.float16 or sample.ndim != 2 or sample.shape[1] != card.dimensions:
        raise problem
    known = dict(card.familiarity)
    nearest = known.pop("nearest")
    if set(known) != {"cosine", "logit", "offset"} or not np.isfinite(sample).all():
        raise problem
    if type(nearest) is not int or not 1 <= nearest <= len(sample):
        raise problem
    if not all(isinstance(value, float) and math.isfinite(value) for value in known.values()):
        raise problem
    return Familiarity(sample.astype(np.float32), nearest, **known)
