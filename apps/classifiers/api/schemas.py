"""Bodies of requests and answers of the classifier routes."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from apps.classifiers.evaluation.thresholds.decision import MIN_KEPT_SHARE
from apps.classifiers.prediction import predict as prediction_predict
from apps.classifiers.training.label_quality.label_rules import RareLabels
from apps.core.schemas.json_types import JsonObject
from apps.embeddings.services import LongTexts


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
    metrics: JsonObject
    notes: list[str]


class ClassifierOut(ClassifierRow):
    """`metrics` to `versions` are those of the run that answers, named by `version`."""

    status: str = Field(description="Of the newest run, like run, error and progress.")
    run: RunRef
    error: str
    progress: Progress
    metrics: JsonObject
    per_class: list[JsonObject]
    confusion: Confusion
    notes: list[str]
    left_out: list[JsonObject]
    options: JsonObject
    versions: JsonObject
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
    labels: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = Field(
        None,
        description="Minimum confidence of single labels, in place of `unsure`. Without it, those "
        "that are set stay; {} removes them.",
    )


class Predictions(Schema):
    predictions: list[PredictionOut]
    version: int
