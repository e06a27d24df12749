"""Set the thresholds of a classifier and its live version over HTTP."""

from typing import Any

from django.http import HttpRequest

from apps.classifiers import services
from apps.classifiers.api.classifiers import get_mine, router
from apps.classifiers.api.schemas import (
    RunRef,
    ThresholdsOut,
)
from apps.classifiers.models import Status as RunStatus
from apps.core.api import ApiError, NotFound


@router.put("/classifiers/{int:pk}/gates", response=ThresholdsOut)
def set_thresholds(request: HttpRequest, pk: int, data: ThresholdsOut) -> Any:
    """Set the thresholds for "unsure" and "none of these" for the live version and later ones."""
    classifier = get_mine(request, pk)
    if classifier.current is None:
        raise ApiError(409, "not_ready", "This classifier is not trained yet.")
    chosen = services.set_thresholds(
        classifier.current, unsure=data.unsure, kept=data.kept, by_label=data.labels
    )
    return {"unsure": chosen.unsure, "kept": chosen.kept, "labels": dict(chosen.by_label)}


@router.post("/classifiers/{int:pk}/runs/{int:number}/promote", response={200: RunRef})
def promote(request: HttpRequest, pk: int, number: int) -> Any:
    """Make a version live."""
    run = get_mine(request, pk).runs.select_related("classifier").filter(number=number).first()
    if run is None:
        raise NotFound("run")
    if run.status != RunStatus.READY:
        raise ApiError(
            409, "not_ready", f"Run {number} is {run.status}. Only a finished version can be live."
        )
    services.promote(run)
    return {"id": run.pk, "status": run.status}
