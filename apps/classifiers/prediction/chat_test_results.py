"""Compare a chat model with the classifier on the rows that are done."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings

from apps.batch.models import ItemStatus
from apps.batch.services import rows_of
from apps.classifiers import metric_text
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.statistics import mcnemar
from apps.classifiers.evaluation.statistics.calibration_error import expected_calibration_error
from apps.classifiers.models import ChatTest, Run
from apps.classifiers.prediction import chat_labels
from apps.core.statistics.confidence_interval import wilson_interval
from apps.llm.thinking import label_of

DISAGREEMENTS = 100
FINISHED = (ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)


@dataclass(frozen=True, slots=True)
class ModelScore:
    """One of the two on the rows that are done."""

    accuracy: float
    low: float
    high: float
    ece: float | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    text: str
    truth: str
    classifier: str
    classifier_confidence: float
    chat: str
    """Empty: an invalid answer, which `raw` shows."""
    chat_confidence: float | None
    raw: str

    @property
    def verdict(self) -> str:
        if self.chat == self.truth:
            return "chat model correct"
        return "classifier correct" if self.classifier == self.truth else "both wrong"


@dataclass(frozen=True, slots=True)
class Result:
    """Results of a chat test so far."""

    done: int
    total: int
    invalid: int
    failed: int
    seconds_per_row: float | None
    tokens_per_row: float | None
    chat: ModelScore | None = None
    classifier: ModelScore | None = None
    paired: mcnemar.PairedResult | None = None
    disagreements: list[Disagreement] = field(default_factory=list)
    differ: int = 0
    failures: list[tuple[str, int]] = field(default_factory=list)
    """Why rows failed, and how many for each reason."""
    asked_shots: int | None = None
    """Examples of each label that were asked for; None: of a test from before that was kept."""
    thinking: str = ""
    """The setting in words."""

    @property
    def has_calibration(self) -> bool:
        """True if there are enough rows for a calibration error."""
        return self.paired is not None and self.paired.rows >= metric_text.MIN_ROWS_FOR_CALIBRATION


def read_result(test: ChatTest) -> Result:
    """Counted from the rows of the batch; an invalid answer is a wrong one, a failed row is none.

    Raises:
        NoRowResults: nothing is known of the rows of this run.
    """
    run, batch = test.run, test.batch
    spec = chat_labels.Spec.read(batch.spec)
    known = row_results.load(Path(settings.CLASSIFIERS_DIR), run.artefact)
    labels = [entry["label"] for entry in run.per_class]
    items: list[dict[str, Any]] = list(
        rows_of(batch.pk)
        .filter(status__in=FINISHED)
        .order_by("index")
        .values(
            *("status", "code", "reason", "input", "output", "raw"),
            *("prompt_tokens", "completion_tokens"),
        )
    )
    answered = [item for item in items if not _has_failed(item)]
    found = Result(
        done=len(items),
        total=batch.total,
        invalid=sum(item["status"] == ItemStatus.REJECTED for item in answered),
        failed=len(items) - len(answered),
        seconds_per_row=batch.active_seconds / len(answered)
        if answered and batch.active_seconds
        else None,
        tokens_per_row=_tokens(answered),
        failures=_failures(items),
        asked_shots=spec.asked_shots,
        thinking=label_of(spec.thinking or "off"),
    )
    return _compare(found, answered, known.test, labels, run) if answered else found


def _has_failed(item: dict[str, Any]) -> bool:
    """True if there is no answer to count, also if the model only thought or was cut off."""
    return bool(item["status"] == ItemStatus.FAILED or item["code"] == chat_labels.UNFINISHED)


def _failures(items: list[dict[str, Any]]) -> list[tuple[str, int]]:
    reasons = Counter(item["reason"] for item in items if _has_failed(item))
    return [(reason or "No reason was given.", rows) for reason, rows in reasons.most_common(3)]


def _tokens(items: list[dict[str, Any]]) -> float | None:
    total = sum(item["prompt_tokens"] + item["completion_tokens"] for item in items)
    return total / len(items) if items else None


def _compare(
    found: Result,
    items: list[dict[str, Any]],
    side: row_results.PredictedRows,
    labels: list[str],
    run: Run,
) -> Result:
    places = np.asarray([chat_labels.RowText.read(item["input"]).at for item in items])
    truth = side.truth[places]
    said = np.asarray(
        [labels.index(item["output"]["label"]) if item["output"] else -1 for item in items]
    )
    confidence = np.asarray(
        [item["output"]["confidence"] if item["output"] else 0.0 for item in items]
    )
    ours = side.predicted[places]
    differ = np.flatnonzero(said != ours)
    # Where one of the two is right comes before where both wrong.
    order = differ[np.argsort((said == truth)[differ] | (ours == truth)[differ])[::-1]]
    shown = order[:DISAGREEMENTS].tolist()
    texts = [str(items[at]["input"]["text"]) for at in shown]
    return replace(
        found,
        chat=_score(said == truth, confidence, said >= 0),
        classifier=_score(ours == truth, side.confidence[places], np.ones(len(ours), np.bool_)),
        paired=mcnemar.compare_paired(ours == truth, said == truth),
        differ=len(differ),
        disagreements=[
            Disagreement(
                text=text,
                truth=labels[truth[at]],
                classifier=labels[ours[at]],
                classifier_confidence=float(side.confidence[places[at]]),
                chat=labels[said[at]] if said[at] >= 0 else "",
                chat_confidence=float(confidence[at]) if said[at] >= 0 else None,
                raw=items[at]["raw"][:200],
            )
            for at, text in zip(shown, texts, strict=True)
        ],
    )


def _score(right: Any, confidence: Any, valid: Any) -> ModelScore:
    count = int(right.sum())
    low, high = wilson_interval(count, len(right))
    ece = None
    if valid.any():
        ece = expected_calibration_error(confidence[valid], right[valid])
    return ModelScore(count / len(right), low, high, ece)
