"""A trained classifier as files of other libraries.

These libraries take seconds and a hundred megabytes to load, so a worker writes the files: when a
run is trained, or (older and imported ones) when somebody looks at the page. The web process only
reads them.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import numpy as np

from apps.classifiers.prediction.predictor import Predictor
from apps.classifiers.training.estimator import as_estimator
from apps.runtime.atomic_file import write_atomically

FORMS = ("skops", "onnx")
"""Each needs the package of its name; where onnx could not be installed, the other is written."""


def write(folder: Path, name: str, predictor: Predictor) -> None:
    """Writes what is not there yet; a run never changes.

    Somebody may look at the page while the worker that trained is still at it: another one then
    waits instead of loading the libraries too.
    """
    forms = {"skops": as_skops, "onnx": as_onnx}
    paths = {form: _path(folder, name, form) for form in available()}
    with one_writer(_path(folder, name, "skops").parent):
        for form, path in paths.items():
            if not path.exists():
                write_atomically(path, forms[form](predictor))


def available() -> list[str]:
    """The forms whose package is installed; found without loading it."""
    return [form for form in FORMS if _is_installed(form)]


def _is_installed(package: str) -> bool:
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """One process at a time; one that dies lets the next one in."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def all_written(folder: Path, name: str) -> bool:
    return all(_path(folder, name, form).exists() for form in available())


def read(folder: Path, name: str) -> dict[str, bytes]:
    """The files by their form.

    Raises:
        FileNotFoundError: a worker has not written them yet.
    """
    return {form: _path(folder, name, form).read_bytes() for form in available()}


def remove(folder: Path, name: str) -> None:
    for form in FORMS:
        _path(folder, name, form).unlink(missing_ok=True)


def _path(folder: Path, name: str, form: str) -> Path:
    return folder / f"{name}.{form}"


def as_skops(predictor: Predictor) -> bytes:
    """A LogisticRegression for scikit-learn, which skops loads without trusting anything."""
    import skops.io  # type: ignore[import-untyped]

    card = predictor.card
    fitted = as_estimator(predictor.weights, predictor.bias, card.temperature, card.labels)
    dumped: bytes = skops.io.dumps(fitted)
    return dumped


def as_onnx(predictor: Predictor) -> bytes:
    """vectors (n, d) float32 -> logits, probabilities (n, labels); the labels are in its metadata.

    Written by hand, a matrix product and a softmax: no converter to trust.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    card = predictor.card
    labels, dimensions = len(card.labels), card.dimensions
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["vectors", "weights", "bias"], ["logits"], transB=1),
            helper.make_node("Div", ["logits", "temperature"], ["calibrated"]),
            helper.make_node("Softmax", ["calibrated"], ["probabilities"], axis=1),
        ],
        "classifier",
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [None, dimensions])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, labels])
            for name in ("logits", "probabilities")
        ],
        [
            numpy_helper.from_array(predictor.weights, "weights"),
            numpy_helper.from_array(predictor.bias, "bias"),
            numpy_helper.from_array(np.asarray(card.temperature, np.float32), "temperature"),
        ],
    )
    # Versions that runtimes of the last years read.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"labels": json.dumps(card.labels)})
    onnx.checker.check_model(model)
    written: bytes = model.SerializeToString()
    return written
