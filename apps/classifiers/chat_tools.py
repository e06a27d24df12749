"""A person's own classifiers, for the model they talk to."""

from typing import TypedDict

from django.contrib.auth.models import User

from apps.classifiers.errors import BadArtefact, ModelChanged, NotReady
from apps.classifiers.evaluation.thresholds.decision import Refusal
from apps.classifiers.models import Classifier
from apps.classifiers.prediction import predict, text_checks
from apps.core.tools import ToolError
from apps.embeddings.errors import TextsTooLarge
from apps.llm.errors import LLMError
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer

NAMED_AT_MOST = 50


class TextsToClassify(TypedDict):
    classifier: str
    texts: list[str]


async def classify_text(user: User, arguments: TextsToClassify) -> str:
    """Classify texts and return one line for each."""
    texts = arguments["texts"]
    if problems := text_checks.check_texts(texts):
        raise ToolError(" ".join(problems[:3]))
    classifier = await in_db(_find, user, arguments["classifier"])
    try:
        predictions = await predict.load_and_predict(classifier, texts)
    except (NotReady, ModelChanged, BadArtefact, TextsTooLarge) as error:
        raise ToolError(str(error)) from error
    except (LLMError, NoServer) as error:
        raise ToolError(f"The embedding server could not answer: {error}") from error
    return "\n".join(
        f"{number}. {_line(prediction)}" for number, prediction in enumerate(predictions, start=1)
    )


def _line(prediction: predict.Prediction) -> str:
    labels = ", ".join(f"{ranked.label} ({ranked.confidence:.0%})" for ranked in prediction.top)
    return labels if prediction.gate == Refusal.NOTHING else f"{labels} [{prediction.gate}]"


def _find(user: User, name: str) -> Classifier:
    mine = Classifier.objects.owned_by(user).select_related("server", "current", "dataset")
    if found := mine.filter(name__iexact=name.strip()).order_by("-pk").first():
        return found
    names = list(mine.exclude(current=None).values_list("name", flat=True)[:NAMED_AT_MOST])
    if not names:
        raise ToolError("This person has no trained classifier.")
    listed = ", ".join(f"“{name}”" for name in names)
    raise ToolError(f"There is no classifier “{name}”. There are: {listed}.")
