"""The likeliest labels of a row that is being labelled, by the classifier of its dataset."""

import asyncio

from apps.classifiers.errors import BadArtefact, ModelChanged, NotReady
from apps.classifiers.models import Classifier
from apps.classifiers.prediction.predict import load_and_predict
from apps.datasets.hooks import Guesses
from apps.datasets.models import Dataset
from apps.embeddings.errors import TextsTooLarge
from apps.llm.errors import LLMError
from apps.runtime.async_db import in_db
from apps.servers.errors import NoServer

SHOWN = 5
PATIENCE_S = 2.0
CANNOT_ANSWER = (
    TimeoutError,
    LLMError,
    NoServer,
    TextsTooLarge,
    BadArtefact,
    ModelChanged,
    NotReady,
)


async def guess_labels(dataset: Dataset, text: str) -> Guesses | None:
    """Ask the live version of the newest classifier that was trained on the dataset.

    Returns:
        None without one, or if it cannot answer within two seconds: labelling does not wait.
    """
    classifier = await in_db(_newest, dataset)
    if classifier is None or classifier.current is None:
        return None
    try:
        async with asyncio.timeout(PATIENCE_S):
            (prediction,) = await load_and_predict(classifier, [text], top=SHOWN)
    except CANNOT_ANSWER:
        return None
    return Guesses(
        f"{classifier.name}, version {classifier.current.number}",
        tuple((ranked.label, ranked.confidence) for ranked in prediction.top),
    )


def _newest(dataset: Dataset) -> Classifier | None:
    mine = Classifier.objects.for_prediction().filter(owner_id=dataset.owner_id, dataset=dataset)
    return mine.filter(current__isnull=False).order_by("-pk").first()
