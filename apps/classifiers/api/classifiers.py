"""Classifiers over HTTP."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.classifiers import services
from apps.classifiers.errors import BadArtefact, CannotTrain, ModelChanged, NoRowResults, NotReady
from apps.classifiers.evaluation.thresholds import MIN_KEPT_SHARE
from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
from apps.classifiers.models import Status as RunStatus
from apps.classifiers.prediction import predict as prediction_predict
from apps.classifiers.training.label_rules import LabelOptions, RareLabels
from apps.core.api import ApiError, NotFound, Page, get_owned, owner, page
from apps.core.quotas import limited
from apps.datasets.models import Dataset
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import LongTexts, Preparation
from apps.runtime.async_db import in_db
from apps.servers.models import Server

router = Router(tags=["classifiers"])


class Options(Schema):
    seed: int = Field(default=0, ge=0, lt=2**31)
    balanced: bool = False
    prefix: str = Field("", max_length=200, description="Prefix added to every text.")
    dimensions: int = Field(
        0, ge=0, le=100_000, description="Embedding dimensions to keep. 0 = all."
    )
    long_texts: LongTexts = "reject"
    rare_labels: RareLabels = Field(
        "leave_out",
        description="Labels with too few training texts: leave_out, pool as “other”, or fail.",
    )
    rare_below: int = Field(2, ge=2, le=1000, description="Different texts a label needs.")
    train_oos: bool = Field(
        False, description="Train “oos” as a label; else such rows set the out-of-scope threshold."
    )


class ClassifierIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    dataset: int
    server: int | None = None
    model: str = Field("", max_length=300)
    test_dataset: int | None = None
    options: Options = Field(default_factory=lambda: Options.model_validate({}))


class RunRef(Schema):
    id: int
    status: str


class ClassifierMade(Schema):
    id: int
    run: RunRef


class Progress(Schema):
    stage: str
    done: int
    total: int
    eta_s: float | None
    reason: str = ""
    """Why it waits."""


class Confusion(Schema):
    labels: list[str]
    matrix: list[list[int]]


class ClassifierRow(Schema):
    id: int
    name: str
    dataset: int | None
    test_dataset: int | None
    created: datetime
    version: int | None = Field(description="The live version.")


class NewestRun(Schema):
    """It may be in training, failed, or held back as worse than the run that answers."""

    version: int
    status: str
    metrics: dict[str, Any]
    notes: list[str]


class ClassifierOut(ClassifierRow):
    """`metrics` to `versions` are those of the run that answers, named by `version`."""

    status: str = Field(description="Of the newest run, like run, error and progress.")
    run: RunRef
    error: str
    progress: Progress
    metrics: dict[str, Any]
    per_class: list[dict[str, Any]]
    confusion: Confusion
    notes: list[str]
    left_out: list[dict[str, Any]]
    options: dict[str, Any]
    versions: dict[str, Any]
    newest: NewestRun


class Texts(Schema):
    texts: list[str] = Field(min_length=1, max_length=prediction_predict.MAX_TEXTS)
    top: int = Field(
        prediction_predict.TOP, ge=1, le=1_000, description="Labels per text, best first."
    )
    version: int | None = Field(None, ge=1, description="A run; without it the one that answers.")


class RankedLabel(Schema):
    label: str
    confidence: float


class PredictionOut(RankedLabel):
    top: list[RankedLabel]
    gate: str | None = Field(
        description="`unsure` or `none_of_these` if the label should not be trusted, else null."
    )
    score: float = Field(
        description="How much the text is like those of the training; none_of_these is below a "
        "threshold of it. Comparable between answers of one version."
    )
    notice: str | None = Field(None, description="How a text that was too long was handled.")


class ThresholdsOut(Schema):
    unsure: float = Field(
        ge=0, le=1, description="Minimum confidence. Below it, the result is `unsure`."
    )
    kept: float = Field(
        ge=MIN_KEPT_SHARE,
        le=1,
        description="Share of in-scope texts to keep. The rest is `none_of_these`.",
    )


class Predictions(Schema):
    predictions: list[PredictionOut]
    version: int


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
    try:
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
    except CannotTrain as error:
        raise ApiError(422, "cannot_train", str(error)) from error
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
    try:
        run = services.start_run(get_mine(request, pk))
    except CannotTrain as error:
        raise ApiError(422, "cannot_train", str(error)) from error
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


@router.post("/classifiers/{int:pk}/predict", response=Predictions, url_name="predict")
@limited("predictions")
async def predict(request: HttpRequest, pk: int, data: Texts) -> Any:
    """The most likely labels for each text, with calibrated confidence."""
    try:
        kept = await in_db(_stored, request, pk, data)
        predictions = await prediction_predict.predict(kept, data.texts, top=data.top)
    except NotReady as error:
        raise ApiError(409, "not_ready", str(error)) from error
    except ModelChanged as error:
        raise ApiError(409, "model_changed", str(error)) from error
    except BadArtefact as error:
        raise ApiError(503, "no_artefact", str(error)) from error
    except TextsTooLarge as error:
        errors = [
            {"loc": ["body", "texts", place], "msg": str(reason)}
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


def _stored(request: HttpRequest, pk: int, data: Texts) -> prediction_predict.LoadedClassifier:
    """All that a prediction needs of the database, in one query; a run that is named takes two."""
    classifier = get_owned(Classifier.objects.for_prediction(), request, pk)
    if problems := prediction_predict.check_texts(data.texts):
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


@router.put("/classifiers/{int:pk}/gates", response=ThresholdsOut)
def set_thresholds(request: HttpRequest, pk: int, data: ThresholdsOut) -> Any:
    """Set the thresholds for "unsure" and "none of these" for the live version and later ones."""
    classifier = get_mine(request, pk)
    if classifier.current is None:
        raise ApiError(409, "not_ready", "This classifier is not trained yet.")
    try:
        chosen = services.set_thresholds(classifier.current, unsure=data.unsure, kept=data.kept)
    except NoRowResults as error:
        raise ApiError(409, "no_evidence", str(error)) from error
    return {"unsure": chosen.unsure, "kept": chosen.kept}


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
