"""What a run leaves: its classifier, and the JSON of its input, fit and results.

Pages and API read that JSON.
"""

import platform
from typing import Any

import numpy as np

from apps.classifiers.evaluation.evaluate_run import RunEvaluation
from apps.classifiers.prediction.predictor import ModelCard, Predictor
from apps.classifiers.run_results import (
    FitSummary,
    StrengthScore,
    to_json,
    to_json_list,
)
from apps.classifiers.training.embed_rows import EmbeddedRows, EmbeddedTexts
from apps.classifiers.training.estimator import LIBRARY_VERSION
from apps.classifiers.training.rows import TrainingRows
from apps.classifiers.training.trainer import Fit
from apps.core.schemas.json_types import JsonObject
from apps.embeddings.services import Preparation

RunFields = dict[str, Any]
"""Values of fields of `Run`, for an update."""


def input_fields(
    rows: TrainingRows, embedded: EmbeddedTexts, preparation: Preparation, dimensions: int
) -> RunFields:
    """Fields of the run that describe its data and its embedding model."""
    test = np.flatnonzero(rows.test).tolist()
    return {
        "skipped_rows": to_json_list(embedded.skipped_rows),
        "data_hash": rows.hash,
        "snapshots": to_json_list(rows.snapshots),
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


def fit_summary(data: EmbeddedRows, fit: Fit, *, held_back: bool) -> JsonObject:
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
    return to_json(summary)


def result_fields(evaluation: RunEvaluation) -> RunFields:
    """Fields of the run that its evaluation measured."""
    report = evaluation.report
    return {
        "metrics": report.metrics,
        "per_class": report.per_class,
        "confusion": report.matrix,
        "reliability": report.reliability,
        "confused_pairs": to_json_list(evaluation.confused_pairs),
        "leaks": to_json(evaluation.leaks),
        "learning_curve": to_json_list(evaluation.learning_curve),
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
