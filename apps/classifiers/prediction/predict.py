"""Asking a classifier: texts in, labels with calibrated probabilities out.

What an answer costs above its embedding is measured by `bench/classifiers/predict.py`: one trip to
the database for all that is stored, one for vectors that are there already, and the new vector is
saved when the answer is on its way.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from django.conf import settings

from apps.classifiers.errors import ModelChanged, NotReady
from apps.classifiers.evaluation.thresholds.decision import Refusal, Thresholds
from apps.classifiers.models import Classifier, Run
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.model_check import describe_changed_model
from apps.classifiers.prediction.predictor import Predictor, RankedLabel
from apps.classifiers.training.embed_rows import embedding_target
from apps.embeddings.services import (
    Embedder,
    Preparation,
    embed_prepared,
    identify,
)
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.services import Target

MAX_TEXTS = 1_000
TOP = 3
AT_ONCE = 32  # texts judged in a millisecond or two; more would keep the event loop waiting


@dataclass(frozen=True, slots=True)
class Prediction:
    """The most likely labels with calibrated probabilities, best first, and the refusal."""

    top: list[RankedLabel]
    score: float
    """How much the text is like those it was trained on: compared with the second threshold."""
    gate: Refusal = Refusal.NOTHING
    notice: str = ""
    """What was done to a text that was too long."""

    @property
    def label(self) -> str:
        return self.top[0].label

    @property
    def confidence(self) -> float:
        return self.top[0].confidence


@dataclass(frozen=True, slots=True)
class LoadedClassifier:
    """A classifier read from disk, before its embedding model is checked."""

    run: Run
    predictor: Predictor
    target: Target


@dataclass(frozen=True, slots=True)
class ReadyClassifier:
    """A classifier that can answer: its run, its numbers, and the model its vectors come from."""

    run: Run
    predictor: Predictor
    thresholds: Thresholds
    embedder: Embedder
    preparation: Preparation


def load_classifier(classifier: Classifier, run: Run | None = None) -> LoadedClassifier:
    """Load the live version, or another run. Blocks.

    Costs no query where the classifier came from `Classifier.objects.for_prediction()`, and no file
    after the first time.

    Raises:
        NotReady: it was never trained.
        NoServer: its server was removed.
        BadArtefact: its file is missing or damaged.
    """
    chosen = run or _answering(classifier)
    if chosen is None:
        raise NotReady("This classifier is not trained yet. Train it first.")
    target = embedding_target(classifier)
    return LoadedClassifier(
        chosen, predictor_file.load(Path(settings.CLASSIFIERS_DIR), chosen.artefact), target
    )


def _answering(classifier: Classifier) -> Run | None:
    if classifier.current_id is None:
        return None
    if Classifier._meta.get_field("current").is_cached(classifier):
        return classifier.current
    return Run.objects.filter(pk=classifier.current_id).only("pk", "number", "thresholds").first()


async def prepare_classifier(kept: LoadedClassifier) -> ReadyClassifier:
    """Check that the embedding model is still there and return what predicts.

    Raises:
        ModelChanged: another embedding model is behind the server.
        LLMError: the embedding server does not answer.
    """
    card = kept.predictor.card
    embedder = await identify(kept.target)
    if embedder.fingerprint != card.embedding_fingerprint:
        raise ModelChanged(describe_changed_model(card, embedder.target.model))
    return ReadyClassifier(
        kept.run,
        kept.predictor,
        Thresholds.read(kept.run.thresholds),
        embedder,
        Preparation.read(card.preparation),
    )


async def classify(
    ready: ReadyClassifier, texts: Sequence[str], *, lane: Lane = Lane.INTERACTIVE, top: int = TOP
) -> list[Prediction]:
    """Return the most likely labels of each text. Interactive callers do not wait for saves.

    Raises:
        ModelChanged: the vectors have another width than at training.
        LLMError, TextsTooLarge: the embedding server failed, or a text does not fit.
    """
    prepared = await embed_prepared(
        ready.embedder,
        texts,
        ready.preparation,
        lane=lane,
        save_later=lane is Lane.INTERACTIVE,
        lasting=False,
    )
    if prepared.vectors.shape[1] != ready.predictor.card.dimensions:
        raise ModelChanged(
            f"The classifier expects {ready.predictor.card.dimensions} dimensions, but the "
            f"embedding model returns {prepared.vectors.shape[1]}. Retrain the classifier."
        )
    judge = partial(ready.predictor.score_texts, prepared.vectors, count=top)
    judged = await asyncio.to_thread(judge) if len(texts) > AT_ONCE else judge()
    return [
        Prediction(
            judgement.top,
            judgement.score,
            ready.thresholds.decide(
                judgement.top[0].confidence, judgement.score, judgement.top[0].label
            ),
            prepared.shortened.get(place, ""),
        )
        for place, judgement in enumerate(judged)
    ]


async def predict(
    kept: LoadedClassifier, texts: Sequence[str], *, top: int = TOP
) -> list[Prediction]:
    """Return the most likely labels of each text.

    Raises:
        ModelChanged: its embedding model is not there any more.
        LLMError, TextsTooLarge: the embedding server failed, or a text does not fit.
    """
    return await classify(await prepare_classifier(kept), texts, top=top)


async def load_and_predict(
    classifier: Classifier, texts: Sequence[str], *, top: int = TOP
) -> list[Prediction]:
    """Load a classifier and return the most likely labels of each text.

    Raises:
        NotReady, NoServer, BadArtefact: as `load_classifier`.
        ModelChanged, LLMError, TextsTooLarge: as `predict`.
    """
    return await predict(await in_db(load_classifier, classifier), texts, top=top)
