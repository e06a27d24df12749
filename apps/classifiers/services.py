"""Making, training, asking and removing classifiers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from apps.classifiers import predictor
from apps.classifiers.models import ACTIVE, Classifier, Run, Status
from apps.classifiers.predictor import Ranked
from apps.classifiers.training import embedding_target
from apps.core.db import in_db
from apps.datasets.models import Dataset
from apps.embeddings.cache import embed, identify
from apps.llm.models import Server, Use
from apps.llm.services import default_target
from apps.llm.slots import Lane

MAX_TEXTS = 1_000
MAX_TEXT = 100_000  # characters
TOP = 3
# A run nobody works on is told to the workers again after this long.
WAKE_AFTER = timedelta(seconds=45)


class NotReady(Exception):
    """The classifier has not been trained yet."""


class ModelChanged(Exception):
    """Another embedding model is behind the server than the one it was trained with."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The likeliest labels with calibrated probabilities, best first."""

    top: list[Ranked]

    @property
    def label(self) -> str:
        return self.top[0].label

    @property
    def confidence(self) -> float:
        return self.top[0].confidence


@transaction.atomic
def create_classifier(
    *,
    owner: User,
    name: str,
    dataset: Dataset,
    test_dataset: Dataset | None = None,
    server: Server | None = None,
    model: str = "",
    seed: int = 0,
    balanced: bool = False,
) -> tuple[Classifier, Run]:
    """A classifier and its first run, which a worker has yet to be told of (`tasks.wake`).

    Raises:
        NoServer: no server was given and none is set for embeddings.
    """
    if server is None:
        target = default_target(Use.EMBEDDINGS)
        server, model = target.server, "" if target.model == "default" else target.model
    classifier = Classifier.objects.create(
        owner=owner,
        name=name[:200],
        dataset=dataset,
        test_dataset=test_dataset,
        server=server,
        model=model,
        options={"seed": seed, "balanced": balanced},
    )
    return classifier, start_run(classifier)


def start_run(classifier: Classifier) -> Run:
    """A new run, or the one that is going on: pressing Train twice trains once."""
    try:
        with transaction.atomic():
            last = classifier.runs.aggregate(Max("number"))["number__max"] or 0
            return Run.objects.create(
                classifier=classifier,
                number=last + 1,
                seed=classifier.options.get("seed", 0),
                options=classifier.options,
            )
    except IntegrityError:
        return classifier.runs.get(status__in=ACTIVE)


def cancel_run(run: Run) -> None:
    """Ends a run: at once where no worker is at it, else before its next batch or fit."""
    now = timezone.now()
    mine = Run.objects.filter(pk=run.pk, status__in=ACTIVE)
    idle = mine.filter(Q(lease_until=None) | Q(lease_until__lt=now))
    if not idle.update(status=Status.CANCELLED, finished=now, lease=None, lease_until=None):
        mine.update(cancel_requested=True)


def forgotten_runs() -> list[int]:
    """The runs nobody works on: their message was lost, or their worker died. Marks them as told.

    Message and row may disagree for a moment; the lease decides, so telling twice is harmless.
    """
    now = timezone.now()
    waiting = Run.objects.filter(status__in=ACTIVE, woken__lt=now - WAKE_AFTER).filter(
        Q(lease_until=None) | Q(lease_until__lt=now)
    )
    found = list(waiting.values_list("pk", flat=True))
    Run.objects.filter(pk__in=found).update(woken=now)
    return found


async def predict(
    classifier: Classifier, texts: Sequence[str], *, top: int = TOP
) -> tuple[list[Prediction], Run]:
    """The likeliest labels of each text, and the run that says so.

    Raises:
        NotReady: it was never trained.
        ModelChanged: its embedding model is not there any more.
        BadArtefact: its file is missing or damaged.
        LLMError, TextsTooLarge: the embedding server failed, or a text does not fit.
    """
    run = await in_db(_current_run, classifier)
    stored = predictor.load(Path(settings.CLASSIFIERS_DIR), run.artefact)
    embedder = await identify(await in_db(embedding_target, classifier))
    if embedder.fingerprint != stored.card.embedding_fingerprint:
        raise ModelChanged(
            f"It was trained on vectors of “{stored.card.embedding_model}”, and now another model "
            f"(“{embedder.target.model}”) answers. Start the old one, or train again."
        )
    vectors = await embed(embedder, texts, lane=Lane.INTERACTIVE)
    if vectors.shape[1] != stored.card.dimensions:
        raise ModelChanged(
            f"It was trained on vectors of {stored.card.dimensions} numbers and the embedding "
            f"model now answers with {vectors.shape[1]}. Train again."
        )
    return [Prediction(ranked) for ranked in stored.top(vectors, count=top)], run


def check_texts(texts: Sequence[str]) -> list[str]:
    """What is wrong with each text that cannot be classified, as sentences."""
    problems = []
    for place, text in enumerate(texts, start=1):
        if not text.strip():
            problems.append(f"Text {place} is empty.")
        elif len(text) > MAX_TEXT:
            problems.append(f"Text {place} has more than {MAX_TEXT:,} characters.")
        elif any("\ud800" <= character <= "\udfff" for character in text):
            problems.append(f"Text {place} contains half of a surrogate pair.")
    return problems


def delete_classifier(classifier: Classifier) -> None:
    """Removes it with its runs and their files. A worker at it finds its lease gone and stops."""
    artefacts = [run.artefact for run in classifier.runs.only("pk")]
    classifier.delete()
    for name in artefacts:
        predictor.remove(Path(settings.CLASSIFIERS_DIR), name)


def _current_run(classifier: Classifier) -> Run:
    if classifier.current_id is None:
        raise NotReady("This classifier is not trained yet.")
    run = Run.objects.filter(pk=classifier.current_id).only("pk", "number").first()
    if run is None:
        raise NotReady("This classifier is not trained yet.")
    return run
