"""A trained classifier as files that work without the workbench, none of which can run code."""

import base64
import csv
import io
import json
import time
import zipfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from apps.classifiers.models import Run
from apps.classifiers.prediction.predictor import Predictor
from apps.classifiers.transfer.model_card import model_card
from apps.classifiers.transfer.script import snippet

FORMAT = "workbench-classifier/1"
FORMS = ("json", "npz", "skops", "onnx", "zip")
CONTENT_TYPES = {"json": "application/json", "zip": "application/zip"}


def card_of(run: Run, predictor: Predictor) -> dict[str, Any]:
    """Describe the arrays: how to use them, and why to believe them."""
    described = asdict(predictor.card)
    del described["familiarity"]  # its sample stays here: vectors give their texts away
    return {
        "format": FORMAT,
        "name": run.classifier.name,
        "version": run.number,
        "created": run.created.isoformat(),
        **described,
        "gates": run.thresholds,
        "metrics": run.metrics,
        "trained_on": {
            "rows": run.train_rows,
            "data_sha256": run.data_hash,
            "judged_on": run.test_source,
            "seed": run.seed,
            "versions": run.versions,
            "C": run.fit.get("C"),
        },
    }


def as_json(card: dict[str, Any], predictor: Predictor) -> bytes:
    """Weights as base64 of little-endian float32: exact, and a third of the size of digits."""
    arrays = {
        "weights": _base64(predictor.weights),
        "bias": _base64(predictor.bias),
    }
    return json.dumps(card | {"arrays": arrays}, ensure_ascii=False, indent=1).encode()


def as_npz(card: dict[str, Any], predictor: Predictor) -> bytes:
    data = io.BytesIO()
    described = np.frombuffer(json.dumps(card).encode(), dtype=np.uint8)
    np.savez(data, weights=predictor.weights, bias=predictor.bias, card=described)
    return data.getvalue()


def as_zip(
    card: dict[str, Any],
    predictor: Predictor,
    converted: Mapping[str, bytes],
    tests: Iterable[Sequence[tuple[str, str]]],
    base_url: str,
) -> Generator[bytes]:
    """All of it, piece by piece, with the model card, a program that runs, and the test rows.

    Args:
        converted: files of other libraries, by their form.
        tests: rows of text and label, some at a time: there may be any number of them.
    """
    out = _Pieces()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", model_card(card))
        archive.writestr("predict.py", snippet(base_url))
        archive.writestr("requirements.txt", "numpy>=1.26\nopenai>=1.40\n")
        archive.writestr("classifier.npz", as_npz(card, predictor))
        archive.writestr("classifier.json", as_json(card, predictor))
        yield out.take()
        for form, data in converted.items():
            archive.writestr(f"classifier.{form}", data)
        entry = zipfile.ZipInfo("test.csv", time.localtime()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w") as file:
            file.write(_csv([("text", "label")]))
            for rows in tests:
                # Read by the program beside it, which a formula's escape would mislead.
                file.write(_csv(rows))
                yield out.take()
    yield out.take()


class _Pieces(io.RawIOBase):
    """A write-only buffer: the archive writes, the response takes piece by piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def _csv(rows: Sequence[tuple[str, str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def _base64(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype="<f4")
    return {
        "dtype": "<f4",
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode(),
    }
