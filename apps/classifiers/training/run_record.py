"""What a run leaves: its classifier, and the JSON of its input, fit and results.

That JSON is written here alone; the pages and the API read it.
"""

import platform
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from apps.classifiers.evaluation.evaluate_run import RunEvaluation
from apps.classifiers.prediction.predictor import ModelCard, Predictor
from apps.classifiers.training.embed_rows import EmbeddedRows, EmbeddedTexts
from apps.classifiers.training.estimator import LIBRARY_VERSION
from apps.classifiers.training.rows import TrainingRows
from apps.classifiers.training.trainer import Fit
from apps.embeddings.services import Preparation


@dataclass(frozen=True, slots=True)
class StrengthScore:
    """Cross-validated scores of one regularisation strength."""

    C: float
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class FitSummary:
    """Outcome of the fit. Field names are the keys of `Run.fit`."""

    C: float
    temperature: float
    converged: bool
    at_edge: bool
    mistakes: int
    calibrated: bool
    held_back: bool
    path: list[StrengthScore]
    labels: int
    strange_rows: int
    """Rows labelled out of scope."""
    unlabelled_rows: int


def input_fields(
    rows: TrainingRows, embedded: EmbeddedTexts, preparation: Preparation, dimensions: int
) -> dict[str, Any]:
    """Fields of the run that describe its data and its embedding model."""
    test = np.flatnonzero(rows.test).tolist()
    return {
        "skipped_rows": embedded.skipped_rows,
        "data_hash": rows.hash,
        "snapshots": rows.snapshots,
        "train_rows": int(rows.train.sum()),
        "test_source": rows.test_source,
        "test_indices": [rows.indices[place] for place in test],
        "embedding": preparation.as_dict()
        | {
            "model": embedded.embedder.target.model,
            "fingerprint": embedded.embedder.fingerprint,
            "dimensions": dimensions,
            "sent": embedded.stats.sent,
            "normalised": embedded.stats.normalised,
        },
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": LIBRARY_VERSION,
        },
    }


def fit_summary(data: EmbeddedRows, fit: Fit, *, held_back: bool) -> dict[str, Any]:
    summary = FitSummary(
        C=fit.C,
        temperature=fit.model.temperature,
        converged=fit.converged,
        at_edge=fit.at_edge,
        mistakes=fit.mistakes,
        calibrated=fit.calibrated,
        held_back=held_back,
        path=[StrengthScore(tried.C, tried.log_loss, tried.accuracy) for tried in fit.path],
        labels=len(data.labels),
        strange_rows=len(data.vectors.out_of_scope),
        unlabelled_rows=len(data.vectors.unlabelled),
    )
    return asdict(summary)


def result_fields(evaluation: RunEvaluation) -> dict[str, Any]:
    """Fields of the run that its evaluation measured."""
    report = evaluation.report
    return {
        "metrics": report.metrics,
        "per_class": report.per_class,
        "confusion": report.matrix,
        "reliability": report.reliability,
        "confused_pairs": evaluation.confused_pairs,
        "leaks": evaluation.leaks,
        "learning_curve": evaluation.learning_curve,
    }


def build_predictor(
    data: EmbeddedRows,
    fit: Fit,
    evaluation: RunEvaluation,
    preparation: Preparation,
    *,
    balanced: bool,
) -> Predictor:
    """Combine the fit with all that a prediction needs to know of the training."""
    card = ModelCard(
        labels=data.labels,
        dimensions=int(data.vectors.train.shape[1]),
        temperature=fit.model.temperature,
        embedding_model=data.embedder.target.model,
        embedding_fingerprint=data.embedder.fingerprint,
        preparation=preparation.as_dict(),
        favour=fit.model.favour.tolist() if balanced else [],
        familiarity=evaluation.familiarity.as_dict(),
    )
    return Predictor(card, fit.model.weights, fit.model.bias, evaluation.familiarity)
