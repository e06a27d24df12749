"""What the classifier pages share."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from apps.classifiers.errors import BadArtefact, ModelChanged, NotReady
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.statistics.mcnemar import RunPredictions
from apps.classifiers.models import Classifier, Run, Status
from apps.embeddings.errors import TextsTooLarge, TooFewDimensions
from apps.llm.errors import LLMError
from apps.servers.services import NoServer

# What may come of asking a classifier, each with a sentence for the person who asked.
EXPECTED = (
    *(NotReady, ModelChanged, BadArtefact, TextsTooLarge, TooFewDimensions),
    *(LLMError, NoServer),
)


def get_classifier(request: HttpRequest, pk: int) -> Classifier:
    mine = Classifier.objects.owned_by(request.user).annotate(live_number=F("current__number"))
    return get_object_or_404(mine.select_related("dataset", "test_dataset", "server"), pk=pk)


def run_page(request: HttpRequest, pk: int, tab: str, part: str = "") -> dict[str, Any]:
    """The context of a page about one run: the one asked for, else the live one.

    `run` is None while there is none that is ready. A tab may have several parts.
    """
    classifier = get_classifier(request, pk)
    number = parse_number(request.GET.get("run"))
    ready = classifier.runs.filter(status=Status.READY)
    if number:
        run: Run | None = get_object_or_404(ready, number=number)
    else:
        run = ready.filter(pk=classifier.current_id or 0).first() or ready.first()
    return {"classifier": classifier, "run": run, "tab": tab, "part": part}


def get_run(request: HttpRequest, pk: int, number: int) -> Run:
    """A ready run of one's own."""
    run = get_object_or_404(
        get_classifier(request, pk).runs.select_related("classifier"),
        number=number,
        status=Status.READY,
    )
    return run


def load_row_results(run: Run) -> row_results.RowResults:
    """Raises:
    NoRowResults: it was trained before rows were kept, or the file is gone.
    """
    return row_results.load(Path(settings.CLASSIFIERS_DIR), run.artefact)


def load_run_predictions(run: Run) -> RunPredictions:
    """A run's test rows and what it said of them.

    Raises:
        NoRowResults: it was trained before rows were kept, or the file is gone.
    """
    return RunPredictions(load_row_results(run).test, [entry["label"] for entry in run.per_class])


def parse_number(text: str | None) -> int | None:
    """Raises:
    Http404: it is no number.
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Http404
    return int(text)


def signed_in_user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
