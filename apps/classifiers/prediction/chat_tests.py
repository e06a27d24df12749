"""A chat model beside the classifier, on the same test rows."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from django.conf import settings
from django.db import transaction

from apps.batch.services import create_batch
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.row_texts import GONE, load_texts
from apps.classifiers.models import ChatTest, Run
from apps.classifiers.prediction import chat_labels
from apps.llm.thinking import ThinkingSetting
from apps.llm.token_bound import max_tokens_of
from apps.servers.models import Server

MOST_ROWS = 2_000
MOST_SHOTS = 5
MOST_EXAMPLES = 400
MOST_CHARACTERS = 20_000_000  # of all test rows together: they are stored with the job
# Of the training rows of a label, the surest first: those after it are often labelled wrong.
CLEAR_SHARE = 0.9


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
    thinking: ThinkingSetting = "off",
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
    test_rows = _test_rows(run, known, rows)
    possible = min(shots, MOST_SHOTS, MOST_EXAMPLES // len(labels))
    examples = _examples(run, known, labels, possible)
    system = chat_labels.system_prompt(labels, examples, instructions, descriptions or {})
    longest = max(max_tokens_of(row.text) for row in test_rows)
    batch = create_batch(
        owner=run.classifier.owner,
        server=server,
        model=model,
        handler=chat_labels.HANDLER,
        spec=chat_labels.Spec(labels, system, longest, shots, thinking).to_json(),
        inputs=(row.to_json() for row in test_rows),
    )
    return ChatTest.objects.create(run=run, batch=batch, shots=possible)


def _test_rows(run: Run, known: row_results.RowResults, rows: int) -> list[chat_labels.RowText]:
    """Choose test rows at random, the same ones for every test of a run."""
    random = np.random.default_rng(run.seed)
    places = random.permutation(len(known.test))[: min(rows, MOST_ROWS)].tolist()
    texts = load_texts(run, known.test, places, longest=chat_labels.LONGEST_TEXT)
    found: list[chat_labels.RowText] = []
    characters = 0
    for place, text in zip(places, texts, strict=True):
        characters += len(text)
        if text != GONE and characters <= MOST_CHARACTERS:
            found.append(chat_labels.RowText(text, place))
    if not found:
        raise ValueError(
            "The test rows have changed since this version was trained. Train again first."
        )
    return found


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
