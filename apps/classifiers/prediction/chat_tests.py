"""A chat model beside the classifier, on the same test rows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction

from apps.batch.models import ItemStatus
from apps.batch.services import create_batch, rows_of
from apps.classifiers import metric_text
from apps.classifiers.evaluation import mcnemar, row_results
from apps.classifiers.evaluation.calibration_error import expected_calibration_error
from apps.classifiers.evaluation.confidence_interval import wilson_interval
from apps.classifiers.evaluation.row_texts import GONE, load_texts
from apps.classifiers.models import ChatTest, Run
from apps.classifiers.prediction import chat_labels
from apps.llm.token_bound import max_tokens_of
from apps.servers.models import Server

MOST_ROWS = 2_000
MOST_SHOTS = 5
MOST_EXAMPLES = 400
MOST_CHARACTERS = 20_000_000  # of all test rows together: they are stored with the job
# Of the training rows of a label, the surest first: those after it are often labelled wrong.
CLEAR_SHARE = 0.9
DISAGREEMENTS = 100
FINISHED = (ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)


@transaction.atomic
def start_chat_test(
    run: Run,
    *,
    server: Server,
    model: str,
    rows: int,
    shots: int,
    instructions: str = "",
    descriptions: Mapping[str, str] | None = None,
) -> ChatTest:
    """A batch that labels test rows, whose pump has yet to be woken.

    Args:
        rows: of the test rows, drawn at random; the same ones for every test of this run.
        shots: examples of each label in the prompt, from the training rows; fewer where there are
            many labels. How many there are in the end is kept with the test.
        instructions: instead of the usual ones.
        descriptions: what a label means, for those that do not say it themselves.

    Raises:
        NoRowResults: nothing is known of the rows of this run.
        ValueError: no test row is there any more.
    """
    known = row_results.load(Path(settings.CLASSIFIERS_DIR), run.artefact)
    labels = [entry["label"] for entry in run.per_class]
    random = np.random.default_rng(run.seed)
    places = random.permutation(len(known.test))[: min(rows, MOST_ROWS)].tolist()
    texts = load_texts(run, known.test, places, longest=chat_labels.LONGEST_TEXT)
    inputs: list[dict[str, Any]] = []
    characters = 0
    for place, text in zip(places, texts, strict=True):
        characters += len(text)
        if text != GONE and characters <= MOST_CHARACTERS:
            inputs.append({"text": text, "at": place})
    if not inputs:
        raise ValueError(
            "The test rows have changed since this version was trained. Train again first."
        )
    possible = min(shots, MOST_SHOTS, MOST_EXAMPLES // len(labels))
    examples = _examples(run, known, labels, possible)
    system = chat_labels.system_prompt(labels, examples, instructions, descriptions or {})
    batch = create_batch(
        owner=run.classifier.owner,
        server=server,
        model=model,
        handler=chat_labels.HANDLER,
        spec={
            "labels": labels,
            "system": system,
            "longest": max(max_tokens_of(row["text"]) for row in inputs),
            "asked_shots": shots,
        },
        inputs=inputs,
    )
    return ChatTest.objects.create(run=run, batch=batch, shots=possible)


def _examples(
    run: Run, known: row_results.RowResults, labels: list[str], shots: int
) -> list[tuple[str, str]]:
    """Choose training rows of each label, from clear cases to borderline ones, shuffled: the most
    certain alone are all alike, and the last example weighs most."""
    side = known.train
    places: list[int] = []
    for code in range(len(labels) if shots else 0):
        mine = np.flatnonzero(side.truth == code)
        order = mine[np.argsort(-side.label_probability[mine], kind="stable")]
        last = max(0, int(CLEAR_SHARE * len(order)) - 1)
        ranks = np.unique(np.linspace(0, last, shots).round().astype(int))
        places += order[ranks[:shots]].tolist() if len(order) else []
    places = np.random.default_rng(run.seed).permutation(places).astype(int).tolist()
    texts = load_texts(run, side, places)
    pairs = zip(texts, (labels[side.truth[place]] for place in places), strict=True)
    return [(text, label) for text, label in pairs if text != GONE]


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
    """What a chat test has shown so far."""

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
        asked_shots=batch.spec.get("asked_shots"),
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
    places = np.asarray([item["input"]["at"] for item in items])
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
