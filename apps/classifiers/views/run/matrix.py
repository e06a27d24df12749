"""The confusion matrix of a version, and the test rows behind one of its cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation import confusion_matrix
from apps.classifiers.evaluation.confusion_matrix import Cell
from apps.classifiers.evaluation.row_texts import load_texts
from apps.classifiers.models import Run
from apps.classifiers.views.run.run_page import (
    get_classifier,
    get_run,
    load_row_results,
    parse_number,
)

MISTAKE_LABELS = 10
ALL_LABELS = 200  # beyond, those with the most mistakes
ROWS = 100


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """The cells of one true label, written already: a template takes too long for thousands."""

    label: str
    cells: SafeString


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a page shows of a confusion matrix."""

    lines: list[MatrixLine]
    whole: bool
    labels: int
    """Of the classifier; there may be fewer lines."""


@require_safe
def matrix(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The matrix as a fragment: the labels with mistakes, or with ?all=1 all of them."""
    run = get_run(request, pk, number)
    if not run.confusion:
        raise Http404
    shown = matrix_of(run, whole=request.GET.get("all") == "1")
    context = {"classifier": run.classifier, "run": run, "matrix": shown}
    return render(request, "classifiers/results/confusion/_matrix.html", context)


def matrix_of(run: Run, *, whole: bool) -> Matrix:
    names = [entry["label"] for entry in run.per_class]
    counts = np.asarray(run.confusion, dtype=np.int64)
    if whole and len(names) <= ALL_LABELS:
        labels = confusion_matrix.side_by_side(counts)
    else:
        limit = ALL_LABELS if whole else MISTAKE_LABELS
        labels = confusion_matrix.most_confused_labels(counts, limit)
    support = counts.sum(axis=1)
    lines = [
        MatrixLine(names[truth], _cells(line, names, int(support[truth])))
        for truth, line in zip(labels, confusion_matrix.cells(counts, labels), strict=True)
    ]
    return Matrix(lines, whole, len(names))


def _cells(line: list[Cell], names: list[str], support: int) -> SafeString:
    return mark_safe(  # noqa: S308 - numbers, and names that are escaped
        "".join(_cell(cell, names, support) if cell.count else "<td></td>" for cell in line)
    )


def _cell(cell: Cell, names: list[str], support: int) -> str:
    predicted = escape(names[cell.predicted])
    verb = "correct" if cell.truth == cell.predicted else f"predicted as {predicted}"
    title = f"{cell.count:,} of {support:,} rows with label {escape(names[cell.truth])}: {verb}"
    address = f"truth={cell.truth}&amp;predicted={cell.predicted}"
    return (
        f'<td><a class="tile tile-{cell.shade}" href="#rows" data-rows="{address}"'
        f' title="{title}" aria-label="{title}">{cell.count:,}</a></td>'
    )


@require_safe
def confused_rows(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The test rows of one label that were predicted as another, or correctly."""
    run = get_run(request, pk, number)
    names = [entry["label"] for entry in run.per_class]
    truth = parse_number(request.GET.get("truth") or "")
    predicted = parse_number(request.GET.get("predicted") or "")
    if truth is None or predicted is None or max(truth, predicted) >= len(names):
        raise Http404
    context: dict[str, Any] = {
        "classifier": run.classifier,
        "run": run,
        "truth": names[truth],
        "predicted": names[predicted],
    }
    try:
        context |= _rows(run, truth, predicted)
    except NoRowResults as error:
        context["problem"] = str(error)
    if request.headers.get("HX-Request"):
        return render(request, "classifiers/results/_rows.html", context)
    context |= {"classifier": get_classifier(request, pk), "tab": "results"}
    return render(request, "classifiers/results/rows.html", context)


def _rows(run: Run, truth: int, predicted: int) -> dict[str, Any]:
    test = load_row_results(run).test
    places = np.flatnonzero((test.truth == truth) & (test.predicted == predicted))
    surest_first = places[np.argsort(-test.confidence[places], kind="stable")][:ROWS]
    texts = load_texts(run, test, surest_first.tolist())
    confidence = test.confidence[surest_first].tolist()
    rows = [
        {"text": text, "confidence": share} for text, share in zip(texts, confidence, strict=True)
    ]
    return {"rows": rows, "count": len(places)}
