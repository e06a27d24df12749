"""Before training: what blocks it, inflates its score or lowers its accuracy, each with one fix.

Pure: what is known of a dataset goes in, lines of a page come out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from apps.classifiers.training.estimator import MIN_TEXTS
from apps.classifiers.training.label_quality.label_rules import MAX_LABELS
from apps.classifiers.training.rows import OUT_OF_SCOPE_LABELS
from apps.datasets.services import Report

NAMED = 3  # labels in a sentence
FEW = 10  # rows; with fewer, a label's score is a coin toss


class Fix(StrEnum):
    """What a button of the page does; the page knows how."""

    LABEL = "label"
    SHOW_CONFLICTS = "conflict"
    SHOW_FEW = "few"
    SHOW_LONG = "long"
    SHOW_ROWS = "rows"
    MOVE_LEAKS = "leak"
    MERGE = "merge"
    REMOVE_DUPLICATES = "duplicates"
    GENERATE = "generate"


@dataclass(frozen=True, slots=True)
class Finding:
    title: str
    detail: str
    fix: Fix
    button: str


@dataclass(frozen=True, slots=True)
class Checklist:
    """The findings by severity, and the checks that passed."""

    blocks: list[Finding] = field(default_factory=list)
    inflates: list[Finding] = field(default_factory=list)
    lowers: list[Finding] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


def check(counts: Mapping[str, int], rows: int, report: Report) -> Checklist:
    """Args:
    counts: rows by label, without the unlabelled ones.
    rows: of the dataset, labelled or not.
    """
    found = Checklist()
    _check_labels(found, counts)
    _check_leaks(found, report)
    _check_rows(found, report, rows - sum(counts.values()))
    _check_names(found, report)
    return found


def _check_labels(found: Checklist, counts: Mapping[str, int]) -> None:
    trained = [label for label in counts if label.casefold() not in OUT_OF_SCOPE_LABELS]
    enough = [label for label in trained if counts[label] >= MIN_TEXTS]
    if not trained:
        blocks = ("No row has a label", "A classifier needs at least 2 labels.")
    elif len(trained) == 1:
        blocks = (
            f"There is only one label, “{trained[0]}”",
            "A classifier needs at least 2 labels to choose between.",
        )
    elif len(enough) < 2:
        blocks = (
            f"Fewer than 2 labels have {MIN_TEXTS} rows",
            f"Labels with fewer than {MIN_TEXTS} different texts are left out.",
        )
    elif len(trained) > MAX_LABELS:
        found.blocks.append(
            Finding(
                f"There are {len(trained):,} labels",
                f"The limit is {MAX_LABELS:,}. Check that the right column is the label.",
                Fix.SHOW_ROWS,
                "Show rows",
            )
        )
        return
    else:
        found.passed.append(f"{len(trained):,} labels to choose between")
        return
    found.blocks.append(Finding(*blocks, Fix.LABEL, "Label rows"))


def _check_leaks(found: Checklist, report: Report) -> None:
    if leaks := report["leak_rows"]:
        found.inflates.append(
            Finding(
                f"{_counted(leaks, 'test row')} also in the training data",
                "The classifier has seen these texts, so the score is too high.",
                Fix.MOVE_LEAKS,
                "Move to training set",
            )
        )
    else:
        found.passed.append("no test row is in the training data")


def _check_rows(found: Checklist, report: Report, unlabelled: int) -> None:
    if unlabelled:
        detail = "They are not trained. They stay in the dataset."
        title = f"{_counted(unlabelled, 'row')} without a label"
        found.lowers.append(Finding(title, detail, Fix.LABEL, "Label rows"))
    else:
        found.passed.append("every row has a label")
    if texts := report["conflict_texts"]:
        title = f"{_counted(texts, 'text')} with different labels"
        detail = f"In {report['conflict_rows']:,} rows. All but one of the labels must be wrong."
        found.lowers.append(Finding(title, detail, Fix.SHOW_CONFLICTS, "Decide"))
    else:
        found.passed.append("no text has two labels")
    if repeated := report["repeated"]:
        title = f"{_counted(repeated, 'duplicate row')} (ignoring case and extra spaces)"
        detail = "Repeated texts count more than others. Splits keep them on one side."
        fix = Finding(title, detail, Fix.REMOVE_DUPLICATES, "Remove duplicates")
        found.lowers.append(fix)
    else:
        found.passed.append("no duplicate texts")
    limit = report["limit"]
    if limit is None:
        return
    if long := report["long_rows"]:
        title = f"{_counted(long, 'text')} probably too long for {limit['model']}"
        detail = (
            f"Over {limit['characters']:,} characters. Its limit is {limit['tokens']:,} tokens."
        )
        found.lowers.append(Finding(title, detail, Fix.SHOW_LONG, "Show rows"))
    else:
        found.passed.append(f"every text fits the model ({limit['tokens']:,} tokens)")


def _check_names(found: Checklist, report: Report) -> None:
    if variants := report["variants"]:
        names = [" and ".join(f"“{one['label']}”" for one in group) for group in variants]
        title = f"{_counted(len(variants), 'group')} of labels differ only in case or spacing"
        button = "Merge" if len(variants) == 1 else f"Merge all {len(variants):,}"
        found.lowers.append(Finding(title, _listed(names), Fix.MERGE, button))
    else:
        found.passed.append("no labels differ only in case")
    if few := [one for one in report["few"] if one["label"]]:
        names = [f"{one['label']} ({one['count']:,})" for one in few]
        title = f"{_counted(len(few), 'label')} with fewer than {FEW} rows"
        detail = f"{_listed(names)}. Small labels are often predicted wrong."
        found.lowers.append(Finding(title, detail, Fix.GENERATE, "Generate 20 of each"))
    else:
        found.passed.append(f"every label has at least {FEW} rows")
    if report["numbers"]:
        detail = "If the file has a column with label names, import it again with that column."
        found.lowers.append(Finding("All labels are numbers", detail, Fix.SHOW_ROWS, "Show rows"))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
