"""Classify rows of a file: every row comes back, also one without a label."""

from collections.abc import Iterator, Sequence
from typing import Any

from apps.classifiers.prediction.predict import (
    Prediction,
    ReadyClassifier,
    classify,
)
from apps.classifiers.prediction.text_checks import check_texts
from apps.embeddings.errors import TextsTooLarge
from apps.files import Cells, RejectedRow
from apps.llm.permits import Lane

TOP = 3
COLUMNS = (
    *("row", "text", "label", "confidence", "gate"),
    *("label_2", "confidence_2", "label_3", "confidence_3", "note"),
)


def own_columns(columns: Sequence[str], text: str) -> dict[str, str]:
    """The file's other columns, each with its name in the result, where ours keep theirs."""
    others = [name for name in columns if name != text]
    taken = {*COLUMNS, *others}
    names = {}
    for name in others:
        shown = name
        while shown in COLUMNS or (shown != name and shown in taken):
            shown += " (file)"
        taken.add(shown)
        names[name] = shown
    return names


def own_cells(cells: Cells | RejectedRow, names: dict[str, str]) -> dict[str, object]:
    """The file's other cells; none of a row that could not be read."""
    if isinstance(cells, RejectedRow):
        return dict.fromkeys(names.values(), "")
    return {shown: _cell(cells.get(name)) for name, shown in names.items()}


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return value if isinstance(value, str | int | float | bool) else str(value)


def row_texts(
    chunk: list[tuple[int, Cells | RejectedRow]], column: str
) -> Iterator[tuple[int, str, str]]:
    """Each row's number, text, and what is wrong with it."""
    for number, cells in chunk:
        if isinstance(cells, RejectedRow):
            yield number, "", cells.reason
            continue
        value = cells.get(column)
        text = value if isinstance(value, str) else "" if value is None else str(value)
        problems = check_texts([text])
        problem = problems[0].replace("Text 1", "The text") if problems else ""
        if "\0" in text:
            problem = "The text contains a NUL character."
        yield number, text, problem


async def classify_rows(
    ready: ReadyClassifier, rows: Iterator[tuple[int, str, str]]
) -> list[dict[str, object]]:
    """All rows, in order, those without a label with the reason in `note`."""
    given = list(rows)
    good = [place for place, (_, _, problem) in enumerate(given) if not problem]
    answers: dict[int, Prediction] = {}
    problems: dict[int, str] = {
        place: problem for place, (_, _, problem) in enumerate(given) if problem
    }
    if good:
        try:
            found = await classify(
                ready, [given[place][1] for place in good], lane=Lane.BATCH, top=TOP
            )
        except TextsTooLarge as error:
            for at, reason in error.problems.items():
                problems[good[at]] = str(reason)
            good = [place for place in good if place not in problems]
            found = (
                await classify(ready, [given[place][1] for place in good], lane=Lane.BATCH, top=TOP)
                if good
                else []
            )
        answers = dict(zip(good, found, strict=True))
    return [
        _row(number, text, answers.get(place), problems.get(place, ""))
        for place, (number, text, _) in enumerate(given)
    ]


def _row(number: int, text: str, answer: Prediction | None, note: str) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(COLUMNS, "") | {
        "row": number,
        "text": text,
        "note": note,
    }
    if answer is None:
        return row
    row |= {"gate": answer.gate.words, "note": answer.notice}
    for place, ranked in enumerate(answer.top, start=1):
        ending = "" if place == 1 else f"_{place}"
        row |= {f"label{ending}": ranked.label, f"confidence{ending}": round(ranked.confidence, 4)}
    return row


def without_empty(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value != "" or name == "text"}
