"""Classifiers as models for other programs: found by id or name, asked for one text."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.db.models import QuerySet

from apps.classifiers.errors import BadArtefact, ModelChanged, NotReady
from apps.classifiers.models import Classifier
from apps.classifiers.prediction import text_checks
from apps.classifiers.prediction.predict import (
    LoadedClassifier,
    Prediction,
    classify,
    load_classifier,
    prepare_classifier,
)
from apps.core.label_models.label_model import LabelModel, LabelModelError, LabelScores
from apps.core.text.storable import to_storable
from apps.embeddings.services import TextsTooLarge, TooFewDimensions
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer

PREFIX = "classifier/"
# A list of models is not paged.
MAX_LISTED = 1_000
MAX_DIGITS = 18
# What a server that is away needs, where it names no time.
RETRY_SECONDS = 5.0


def list_models(person: int) -> list[LabelModel]:
    """Return the trained classifiers of a person, the newest first. Blocks."""
    found = list(_trained(person)[:MAX_LISTED])
    names = Counter(one.name for one in found)
    return [_described(one, is_unique=names[one.name] == 1) for one in found]


def find_model(person: int, name: str) -> LabelModel | None:
    """Return a classifier of a person by its id, or by its name where one trained has it.

    Raises:
        LabelModelError: several have this name.
    """
    wanted = to_storable(name.removeprefix(PREFIX))
    if _is_id(wanted):
        found = _owned(person).filter(pk=int(wanted)).first()
        if found is None:
            return None
        return _described(found, is_unique=not _twins(person, found).exists())
    named = list(_trained(person).filter(name=wanted)[:10])
    if len(named) > 1:
        ids = ", ".join(f"{PREFIX}{one.pk}" for one in named)
        detail = f"Several of your classifiers are named “{wanted[:100]}”. Name one of {ids}."
        raise LabelModelError(400, "ambiguous_model", detail)
    if not named:  # who names one that is not trained is told so
        named = list(_owned(person).filter(name=wanted)[:1])
    return _described(named[0], is_unique=True) if named else None


def _owned(person: int) -> QuerySet[Classifier]:
    return Classifier.objects.filter(owner_id=person).only("name", "created")


def _trained(person: int) -> QuerySet[Classifier]:
    return _owned(person).exclude(current=None)


def _twins(person: int, classifier: Classifier) -> QuerySet[Classifier]:
    return _trained(person).filter(name=classifier.name).exclude(pk=classifier.pk)


def _described(classifier: Classifier, *, is_unique: bool) -> LabelModel:
    name = classifier.name
    aliases = (f"{PREFIX}{name}",) if is_unique and not _is_id(name) else ()
    return LabelModel(f"{PREFIX}{classifier.pk}", aliases, classifier.created)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


async def score_text(person: int, model: LabelModel, text: str, lane: str) -> LabelScores:
    """Return all labels of a text with their probabilities.

    Raises:
        LabelModelError: the text cannot be read, or the classifier cannot answer now.
    """
    if problems := text_checks.check_texts([text]):
        raise LabelModelError(400, "bad_text", problems[0].replace("Text 1", "The text"))
    with _telling_why():
        loaded = await in_db(_load, person, model)
        return await _score(loaded, text, Lane(lane))


def server_of(person: int, model: LabelModel) -> tuple[int, str]:
    """Return the primary key of the server that embeds its texts, and the model there. Blocks.

    Raises:
        LabelModelError: the classifier cannot answer now.
    """
    with _telling_why():
        target = _load(person, model).target
    return target.server.pk, target.model


@contextmanager
def _telling_why() -> Iterator[None]:
    """Raise LabelModelError where a classifier does not answer."""
    try:
        yield
    except TextsTooLarge as error:
        raise LabelModelError(400, "input_too_large", str(error)) from error
    except NotReady as error:
        raise LabelModelError(404, "not_trained", str(error)) from error
    except (ModelChanged, BadArtefact, NoServer, TooFewDimensions) as error:
        raise LabelModelError(503, "not_ready", str(error)) from error
    except LLMError as error:
        raise _without_embeddings(error) from error


def _load(person: int, model: LabelModel) -> LoadedClassifier:
    pk = int(model.id.removeprefix(PREFIX))
    found = Classifier.objects.for_prediction().filter(owner_id=person, pk=pk).first()
    if found is None:
        raise LabelModelError(404, "model_not_found", f"“{model.id}” was deleted.")
    return load_classifier(found)


async def _score(loaded: LoadedClassifier, text: str, lane: Lane) -> LabelScores:
    ready = await prepare_classifier(loaded)
    labels = len(loaded.predictor.card.labels)
    [prediction] = await classify(ready, [text], lane=lane, top=labels)
    return _scores(prediction, loaded.run.number)


def _scores(prediction: Prediction, version: int) -> LabelScores:
    ranked = tuple((one.label, one.confidence) for one in prediction.top)
    return LabelScores(version, ranked, prediction.gate.value, prediction.notice)


def _without_embeddings(error: LLMError) -> LabelModelError:
    """Return what to tell when the server that embeds texts gave no vector."""
    detail = f"The embedding server could not answer: {error}"
    if not error.transient:
        return LabelModelError(502, error.code, detail)
    wait = getattr(error, "retry_after", None) or RETRY_SECONDS
    return LabelModelError(503, error.code, detail, retry_after=wait)
