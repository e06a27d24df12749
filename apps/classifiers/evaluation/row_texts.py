"""The texts behind a run's rows, from the datasets they are in."""

import hashlib
from collections.abc import Iterator, Sequence

from apps.classifiers.evaluation.row_results import PredictedRows
from apps.classifiers.models import Run
from apps.datasets.models import Example
from apps.similarity.text_key import text_key

GONE = "(row changed or deleted)"
SHOWN_TEXT = 300  # characters of an example text kept with the run
LOOKUP_ROWS = 800  # SQLite's older limit is 999 parameters a statement


def load_texts(
    run: Run, side: PredictedRows, places: Sequence[int], *, longest: int = 2_000
) -> list[str]:
    """The text of each place of a side; GONE where the row has another text by now."""
    classifier = run.classifier
    datasets = {0: classifier.dataset_id, 1: classifier.test_dataset_id}
    found: dict[tuple[int, int], str] = {}
    for source, dataset in datasets.items():
        if dataset is None:
            continue
        indices = [int(side.index[place]) for place in places if side.source[place] == source]
        for start in range(0, len(indices), LOOKUP_ROWS):
            rows = Example.objects.filter(
                dataset=dataset, index__in=indices[start : start + LOOKUP_ROWS]
            )
            for index, stored in rows.values_list("index", "text"):
                found[source, index] = stored
    texts = []
    for place in places:
        text: str | None = found.get((int(side.source[place]), int(side.index[place])))
        unchanged = text is not None and is_text_of(int(side.key[place]), text)
        texts.append(text[:longest] if text is not None and unchanged else GONE)
    return texts


def labelled(run: Run, side: PredictedRows) -> Iterator[list[tuple[str, str]]]:
    """Text and label of a side's rows, some at a time, as far as they are still what they were.

    Without those that were cut or averaged: no other program does the same to them.
    """
    labels = [entry["label"] for entry in run.per_class]
    shortened = {entry["text"] for entry in run.skipped_rows}
    truth = side.truth.tolist()
    for start in range(0, len(side), LOOKUP_ROWS):
        places = range(start, min(start + LOOKUP_ROWS, len(side)))
        texts = load_texts(run, side, places, longest=10**7)
        pairs = zip(texts, places, strict=True)
        yield [
            (text, labels[truth[place]])
            for text, place in pairs
            if text != GONE and text[:SHOWN_TEXT] not in shortened
        ]


def row_key(text: str) -> int:
    """Return `text_key` as the unsigned number that evidence stores."""
    return text_key(text) % 2**64


def is_text_of(key: int, text: str) -> bool:
    """Return True if a stored key is that of a text.

    Evidence of earlier versions has keys for which case and outer spaces alone did not count.
    """
    if key == row_key(text):
        return True
    old = text.casefold().strip().encode("utf-8", "replace")
    return key == int.from_bytes(hashlib.blake2b(old, digest_size=8).digest(), "big")
