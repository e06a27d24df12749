"""The texts behind a run's rows, from the datasets they are in."""

from collections.abc import Sequence

from apps.classifiers.evidence import Side, text_key
from apps.classifiers.models import Run
from apps.datasets.models import Example

GONE = "(this row was changed or removed since)"
LOOKUP_ROWS = 800  # SQLite's older limit is 999 parameters a statement


def texts_of(run: Run, side: Side, places: Sequence[int], *, longest: int = 2_000) -> list[str]:
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
        unchanged = text is not None and text_key(text) == int(side.key[place])
        texts.append(text[:longest] if text is not None and unchanged else GONE)
    return texts
