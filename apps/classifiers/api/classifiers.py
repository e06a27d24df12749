"""Classifiers over HTTP."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from apps.classifiers import services
from apps.classifiers.api.schemas import (
    ClassifierIn,
    ClassifierMade,
    ClassifierOut,
    ClassifierRow,
    RunRef,
)
from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
from apps.classifiers.training.label_quality.label_rules import LabelOptions
from apps.core.api import ApiError, NotFound, Page, get_owned, owner, page
from apps.datasets.models import Dataset
from apps.embeddings.services import Preparation
from apps.servers.models import Server

router = Router(tags=["classifiers"])


def get_mine(request: HttpRequest, pk: int) -> Classifier:
    # Not with its run: what a run knows of its rows takes longer to read than a prediction may.
    return get_owned(Classifier.objects.select_related("server"), request, pk)


def _dataset(request: HttpRequest, pk: int) -> Dataset:
    return get_owned(Dataset, request, pk)


def _row(classifier: Classifier) -> dict[str, Any]:
    return {
        "id": classifier.pk,
        "name": classifier.name,
        "dataset": classifier.dataset_id,
        "test_dataset": classifier.test_dataset_id,
        "created": classifier.created,
        "version": classifier.current.number if classifier.current else None,
    }


def _show(classifier: Classifier, run: Run) -> dict[str, Any]:
    """Show the state of the newest run and the numbers of the live version, or of the newest run
    if no version is live."""
    shown = classifier.current or run
    return _row(classifier) | {
        "status": run.status,
        "run": {"id": run.pk, "status": run.status},
        "error": run.error,
        "progress": {
            "stage": run.status,
            "done": run.done,
            "total": run.total,
            "eta_s": run.eta_s,
            "reason": run.reason,
        },
        "metrics": shown.metrics,
        "per_class": shown.per_class,
        "confusion": {
            "labels": [entry["label"] for entry in shown.per_class],
            "matrix": shown.confusion,
        },
        "notes": shown.notes,
        "left_out": shown.skipped_rows,
        "options": shown.options,
        "versions": shown.versions | {"data": shown.data_hash, "embedding": shown.embedding},
        "newest": {
            "version": run.number,
            "status": run.status,
            "metrics": run.metrics,
            "notes": run.notes,
        },
    }


@router.post("/classifiers", response={202: ClassifierMade})
def add_classifier(request: HttpRequest, data: ClassifierIn) -> Any:
    """Create a classifier and train it in the background."""
    server = None
    if data.server is not None:
        server = Server.objects.filter(pk=data.server).first()
        if server is None:
            raise NotFound("server")
    if data.test_dataset == data.dataset:
        raise ApiError(422, "invalid", "The test dataset must differ from the training dataset.")
    classifier, run = services.create_classifier(
        owner=owner(request),
        name=data.name.strip(),
        dataset=_dataset(request, data.dataset),
        test_dataset=_dataset(request, data.test_dataset) if data.test_dataset else None,
        server=server,
        model=data.model,
        seed=data.options.seed,
        balanced=data.options.balanced,
        preparation=Preparation(
            data.options.prefix, data.options.dimensions, data.options.long_texts
        ),
        choices=LabelOptions(
            data.options.rare_labels, data.options.rare_below, data.options.train_oos
        ),
    )
    return Status(202, {"id": classifier.pk, "run": {"id": run.pk, "status": run.status}})


@router.get("/classifiers", response=Page[ClassifierRow])
def list_classifiers(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine = Classifier.objects.owned_by(owner(request)).select_related("current")
    mine = mine.defer(*(f"current__{name}" for name in LARGE_FIELDS))
    return page(mine, _row, limit=limit, after=after, newest_first=True)


@router.get("/classifiers/{int:pk}", response=ClassifierOut)
def get_classifier(request: HttpRequest, pk: int) -> Any:
    classifier = get_mine(request, pk)
    run = classifier.runs.first()
    assert run is not None, "a classifier is created with its first run"
    return _show(classifier, run)


@router.post("/classifiers/{int:pk}/train", response={202: RunRef})
def train_again(request: HttpRequest, pk: int) -> Any:
    """Start a new run, or return the active one."""
    run = services.start_run(get_mine(request, pk))
    return Status(202, {"id": run.pk, "status": run.status})


@router.post("/classifiers/{int:pk}/cancel", response={202: None})
def cancel(request: HttpRequest, pk: int) -> Any:
    for run in get_mine(request, pk).runs.active():
        services.cancel(run)
    return Status(202, None)


@router.delete("/classifiers/{int:pk}", response={204: None})
def delete_classifier(request: HttpRequest, pk: int) -> Any:
    services.delete_classifier(get_mine(request, pk))
    return Status(204, None)
