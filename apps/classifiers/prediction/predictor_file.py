"""Read and write a trained classifier: two files that cannot run code.

`<run>.npz` holds the arrays, `<run>.json` their meaning. The JSON is written last and names the
hash of the arrays: without it, or with another hash, there is no classifier.
"""

import hashlib
import io
import json
import math
import zipfile
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.errors import BadArtefact
from apps.classifiers.evaluation.familiarity import Familiarity
from apps.classifiers.prediction.predictor import ModelCard, Predictor
from apps.runtime.atomic_file import write_atomically

MAX_LABELS = 100_000
MAX_DIMENSIONS = 100_000
MAX_BYTES = 2**31


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
