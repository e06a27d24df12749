"""Choose thresholds from rows that the model had not seen. Pure numpy."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import PredictedRows
from apps.classifiers.evaluation.thresholds.decision import KEPT_SHARE, Thresholds
from apps.classifiers.evaluation.thresholds.score_limit import score_limit

Floats = NDArray[np.float32]

# Strangers may cost this share of the other texts and no more, however many of them it catches.
FEW_OUT_OF_SCOPE, MANY_OUT_OF_SCOPE = 10, 50
KEPT_SHARE_WITH_SOME, KEPT_SHARE_WITH_MANY = 0.97, 0.95


def thresholds_for(
    known: PredictedRows,
    *,
    unsure: float,
    kept: float,
    labels: int,
    by_label: Mapping[str, float] | None = None,
) -> Thresholds:
    """The thresholds that keep this share of rows like the known ones.

    Args:
        known: in-scope rows, judged by a model that had not seen them.
        by_label: minimum confidence of single labels, in place of `unsure`.
    """
    # Of two labels the largest logit says how sure it is, and nothing of out_of_scope.
    logit = score_limit(known.max_logit, kept) if labels > 2 else -float("inf")
    return Thresholds(unsure, kept, logit, score_limit(known.familiarity, kept), by_label or {})


def tuning_rows(out_of_scope: int, *, seed: int = 0) -> NDArray[np.bool_]:
    """Mark the out-of-scope rows that choose the threshold; the others test it. (n,)

    Half of them. Few choose nothing, so all of them may tell.
    """
    chosen = np.zeros(out_of_scope, dtype=np.bool_)
    if out_of_scope >= FEW_OUT_OF_SCOPE:
        chosen[np.random.default_rng(seed).permutation(out_of_scope)[: out_of_scope // 2]] = True
    return chosen


def best_kept_share(scores: Floats, out_of_scope_scores: Floats) -> float:
    """The share to keep at which in-scope kept plus out-of-scope caught is largest (Youden), chosen
    by half of the out_of_scope, within what so many of them may cost."""
    out_of_scope = len(out_of_scope_scores)
    if out_of_scope < FEW_OUT_OF_SCOPE:
        return KEPT_SHARE
    least = KEPT_SHARE_WITH_SOME if out_of_scope < MANY_OUT_OF_SCOPE else KEPT_SHARE_WITH_MANY
    shares = np.arange(0.995, least - 1e-9, -0.005)  # of equals the first: the most kept
    limits = np.asarray([score_limit(scores, float(share)) for share in shares])
    chosen = out_of_scope_scores[tuning_rows(out_of_scope)]
    caught = (chosen[None, :] < limits[:, None]).mean(axis=1)
    return round(float(shares[int((shares + caught).argmax())]), 3)
