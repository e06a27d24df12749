"""A classifier from a file somebody sent: arrays and a card, each checked. Never a pickle."""

import base64
import binascii
import json
import zipfile
import zlib
from io import BytesIO
from typing import Any, TypedDict

import numpy as np

from apps.classifiers.errors import BadArtefact, BadFile
from apps.classifiers.evaluation.statistics.metrics import Metrics
from apps.classifiers.prediction.predictor import Predictor
from apps.classifiers.prediction.predictor_file import MAX_LABELS, parse
from apps.classifiers.transfer.exports import FORMAT
from apps.core.schemas.json_types import JsonObject
from apps.embeddings.services import Preparation

MOST_BYTES = 200 * 1024**2
CARD_FIELDS = (
    *("labels", "dimensions", "temperature", "embedding_model", "embedding_fingerprint"),
    "preparation",
)
LONGEST_LABEL = 200
NUMBERS = {name for name, kind in Metrics.__annotations__.items() if name != "majority_label"}


def check_size(size: int) -> None:
    """Raises BadFile for one that is too large to be read."""
    if size > MOST_BYTES:
        raise BadFile(f"The file is larger than the limit of {MOST_BYTES // 1024**2} MB.")


class DisplayedFields(TypedDict):
    """What a card says besides; checked for its type alone."""

    name: str
    gates: JsonObject
    metrics: JsonObject
    train_rows: int


def read(data: bytes) -> tuple[Predictor, DisplayedFields]:
    """The classifier in an exported .json or .npz, and what its card says besides.

    Raises:
        BadFile: it is too large, of another kind, or not as its description says.
    """
    check_size(len(data))
    if data[:2] == b"\x80\x04" or data[:1] == b"\x80":
        raise BadFile(
            "This is a pickle file, which could run code. It was not opened. Export JSON "
            "or NPZ instead."
        )
    try:
        card, arrays = _from_npz(data) if data[:2] == b"PK" else _from_json(data)
        if card.get("format") != FORMAT:
            raise BadFile("This file is not a classifier exported from Workbench (.json or .npz).")
        described = {name: card[name] for name in CARD_FIELDS}
        described["favour"] = card.get("favour", [])  # older files have none
        _check_card(described)
        packed = BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]  # two float arrays
        return parse(packed.getvalue(), described), _displayed_fields(card)
    except BadArtefact as error:
        raise BadFile(str(error).replace("trained classifier", "file")) from error
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise BadFile("The file is damaged or was not exported from Workbench.") from error


def _from_json(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        card = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadFile(
            "This file is not JSON or NPZ. Export the classifier in one of these formats."
        ) from error
    if not isinstance(card, dict):
        raise BadFile("This file is not a classifier exported from Workbench (.json or .npz).")
    if card.get("format") != FORMAT:
        return card, {}
    arrays = {}
    for name in ("weights", "bias"):
        stored = card["arrays"][name]
        shape = [int(size) for size in stored["shape"]]
        try:
            raw = base64.b64decode(stored["base64"], validate=True)
        except binascii.Error as error:
            raise BadFile(f"The {name} are damaged.") from error
        if stored["dtype"] != "<f4" or min(shape) < 1 or len(raw) != 4 * int(np.prod(shape)):
            raise BadFile(f"The {name} do not match the file’s description.")
        arrays[name] = np.frombuffer(raw, dtype="<f4").reshape(shape).astype(np.float32)
    return card, arrays


def _from_npz(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = {entry.filename for entry in archive.infolist()}
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise BadFile("The file is too large when unpacked.")
        if not {"weights.npy", "bias.npy", "card.npy"} <= names:
            raise BadFile("This file is not a classifier exported from Workbench (.json or .npz).")
        with np.load(BytesIO(data), allow_pickle=False) as arrays:
            card = json.loads(bytes(arrays["card"].astype(np.uint8)))
            return card, {name: arrays[name] for name in ("weights", "bias")}
    except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError) as error:
        # RuntimeError: encrypted, or packed in a way that Python does not read.
        raise BadFile("The file is damaged or encrypted.") from error


def _check_card(card: dict[str, Any]) -> None:
    labels = card["labels"]
    if not isinstance(labels, list) or not 2 <= len(labels) <= MAX_LABELS:
        raise BadFile("A classifier needs 2 to 100,000 labels.")
    if not all(isinstance(label, str) and 0 < len(label) <= LONGEST_LABEL for label in labels):
        raise BadFile(f"A label is empty or longer than {LONGEST_LABEL} characters.")
    if type(card["dimensions"]) is not int:
        raise BadFile("The number of dimensions is not valid.")
    for name in ("embedding_model", "embedding_fingerprint"):
        if not isinstance(card[name], str) or len(card[name]) > 300:
            raise BadFile("The name of the embedding model is not valid.")
    card["temperature"] = float(card["temperature"])
    card["preparation"] = Preparation.read(dict(card["preparation"])).as_dict()


def _displayed_fields(card: dict[str, Any]) -> DisplayedFields:
    """Keep the fields that are only displayed, if they have the right type."""
    gates = card.get("gates")
    metrics = card.get("metrics")
    trained = card.get("trained_on")
    return {
        "name": str(card.get("name") or "Imported classifier")[:200],
        "gates": _thresholds(gates if isinstance(gates, dict) else {}),
        "metrics": {
            name: value
            for name, value in (metrics.items() if isinstance(metrics, dict) else ())
            if name in NUMBERS and _is_number(value)
        }
        | (
            {"majority_label": str(metrics.get("majority_label", ""))[:200]}
            if isinstance(metrics, dict)
            else {}
        ),
        "train_rows": trained["rows"]
        if isinstance(trained, dict) and type(trained.get("rows")) is int and trained["rows"] >= 0
        else 0,
    }


def _thresholds(gates: dict[str, Any]) -> JsonObject:
    found: JsonObject = {
        name: float(gates[name])
        for name in ("unsure", "kept", "max_logit")
        if _is_number(gates.get(name))
    }
    labels = gates.get("labels")
    if isinstance(labels, dict) and all(map(_is_number, labels.values())):
        found["labels"] = {str(label)[:LONGEST_LABEL]: float(labels[label]) for label in labels}
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
