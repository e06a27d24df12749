"""Decide if a finished run goes live and with which thresholds, and write the notes on it."""

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.evaluate_run import RunEvaluation
from apps.classifiers.evaluation.row_results import RowResults
from apps.classifiers.evaluation.statistics import mcnemar
from apps.classifiers.evaluation.thresholds import decision, tuning
from apps.classifiers.models import Classifier, Run
from apps.classifiers.run_results import SkippedRow
from apps.classifiers.training.embed_rows import EmbeddedRows
from apps.classifiers.training.rows import TrainingRows


def choose_thresholds(run: Run, results: RowResults, labels: list[str]) -> decision.Thresholds:
    """Return the person's choice, which holds for every run, else the suggested thresholds."""
    chosen = run.classifier.options.get("gates") or {}
    known, out_of_scope = results.train, results.out_of_scope
    kept = chosen.get("kept")
    if kept is None:
        kept = tuning.best_kept_share(known.familiarity, out_of_scope.familiarity)
    unsure = chosen.get("unsure")
    if unsure is None:
        balanced = bool(run.options.get("balanced"))
        unsure = decision.default_min_confidence(len(labels), balanced=balanced)
    of_labels = chosen.get("labels") or {}
    return tuning.thresholds_for(
        known,
        unsure=float(unsure),
        kept=float(kept),
        labels=len(labels),
        by_label={label: float(of_labels[label]) for label in labels if label in of_labels},
    )


def held_back_notes(run: Run, results: RowResults, labels: list[str]) -> list[str]:
    """Explain why the live version stays live; empty if this run may take its place."""
    now = Classifier.objects.select_related("current").get(pk=run.classifier_id)
    if now.current is None or now.pinned:
        return []
    try:
        before = row_results.load(Path(settings.CLASSIFIERS_DIR), now.current.artefact).test
    except NoRowResults:
        return []
    rows = mcnemar.shared_test_rows(
        mcnemar.RunPredictions(before, [entry["label"] for entry in now.current.per_class]),
        mcnemar.RunPredictions(results.test, labels),
    )
    if not len(rows):
        return []
    found = mcnemar.compare_paired(rows.old_correct, rows.new_correct)
    if not found.is_significant or found.difference >= 0:
        return []
    return [
        f"Held back: on the {found.rows:,} test rows that both were tested on, it is "
        f"{-100 * found.difference:.1f} percentage points worse than run {now.current.number} "
        f"(McNemar’s test, p {mcnemar.format_p_value(found.p_value)}), which stays live. "
        "To use this run, make it live under Ship, Versions."
    ]


def out_of_scope_notes(rows: TrainingRows, chosen: decision.Thresholds) -> list[str]:
    out_of_scope = rows.out_of_scope
    count = int(out_of_scope.sum())
    if not count:
        return []
    names = sorted({label for label, is_so in zip(rows.labels, out_of_scope, strict=True) if is_so})
    few = count < tuning.FEW_OUT_OF_SCOPE
    why = "They are too few to move the threshold" if few else "Half of them chose the threshold"
    return [
        f"{count:,} rows labelled out of scope ({', '.join(f'“{name}”' for name in names[:5])}) "
        f"are not trained as a label. {why}: the least familiar "
        f"{1 - chosen.kept:.1%} of in-scope texts are answered “none of these”. Where this is a "
        "label like any other, make a classifier that trains it."
    ]


def skipped_notes(skipped_rows: Sequence[SkippedRow]) -> list[str]:
    if not skipped_rows:
        return []
    return [f"{len(skipped_rows):,} rows are too long for the embedding model. See the list below."]


def run_notes(
    held_back: list[str],
    chosen: decision.Thresholds,
    data: EmbeddedRows,
    evaluation: RunEvaluation,
) -> list[str]:
    """All notes on a finished run, the most important first."""
    return [
        *held_back,
        *data.rows.notes,
        *evaluation.notes,
        *out_of_scope_notes(data.rows, chosen),
        *skipped_notes(data.skipped_rows),
    ]
