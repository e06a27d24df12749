"""Classify texts over HTTP."""

from typing import Any

from django.http import HttpRequest

from apps.classifiers.api.classifiers import router
from apps.classifiers.api.schemas import (
    Predictions,
    Texts,
)
from apps.classifiers.models import Classifier, Run
from apps.classifiers.models import Status as RunStatus
from apps.classifiers.prediction import predict as prediction_predict
from apps.classifiers.prediction import text_checks
from apps.core.api import ApiError, NotFound, get_owned
from apps.core.errors import ErrorPlace
from apps.core.quotas import limited
from apps.embeddings.errors import TextsTooLarge
from apps.runtime.async_db import in_db


@router.post("/classifiers/{int:pk}/predict", response=Predictions, url_name="predict")
@limited("predictions")
async def predict(request: HttpRequest, pk: int, data: Texts) -> Any:
    """The most likely labels for each text, with calibrated confidence."""
    try:
        kept = await in_db(_load, request, pk, data)
        predictions = await prediction_predict.predict(kept, data.texts, top=data.top)
    except TextsTooLarge as error:
        errors = [
            ErrorPlace(loc=["body", "texts", place], msg=str(reason))
            for place, reason in sorted(error.problems.items())
        ]
        raise ApiError(422, "input_too_large", str(error), errors=errors) from error
    return {
        "predictions": [
            {
                "label": prediction.label,
                "confidence": prediction.confidence,
                "top": [
                    {"label": ranked.label, "confidence": ranked.confidence}
                    for ranked in prediction.top
                ],
                "gate": prediction.gate.value or None,
                "score": prediction.score,
                "notice": prediction.notice or None,
            }
            for prediction in predictions
        ],
        "version": kept.run.number,
    }


def _load(request: HttpRequest, pk: int, data: Texts) -> prediction_predict.LoadedClassifier:
    """All that a prediction needs of the database, in one query; a run that is named takes two."""
    classifier = get_owned(Classifier.objects.for_prediction(), request, pk)
    if problems := text_checks.check_texts(data.texts):
        raise ApiError(422, "invalid", " ".join(problems[:5]))
    if data.version is None:
        return prediction_predict.load_classifier(classifier)
    run = Run.objects.filter(classifier=classifier, number=data.version).only(
        "pk", "number", "thresholds", "classifier_id", "status"
    )
    found = run.first()
    if found is None:
        raise NotFound("run")
    if found.status != RunStatus.READY:
        message = f"Run {found.number} is {found.status}: it cannot answer."
        raise ApiError(409, "not_ready", message)
    return prediction_predict.load_classifier(classifier, found)
