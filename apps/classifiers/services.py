"""Making, training and removing classifiers."""

from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from apps.classifiers.errors import NotReady, UnknownLabel
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.thresholds.decision import Thresholds
from apps.classifiers.evaluation.thresholds.tuning import thresholds_for
from apps.classifiers.models import (
    ACTIVE,
    Classifier,
    FilePrediction,
    Run,
    Status,
    TaskKind,
)
from apps.classifiers.prediction import file_queue, predictor_file
from apps.classifiers.training.label_quality.label_rules import LabelOptions, check_dataset
from apps.classifiers.transfer import convert
from apps.core.schemas.json_types import JsonObject
from apps.datasets.models import Dataset
from apps.embeddings.services import Preparation
from apps.servers.models import Server, Use
from apps.servers.services import default_target
from apps.work import services as work

DEFAULT_PREPARATION = Preparation()
DEFAULT_LABEL_OPTIONS = LabelOptions()


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
    preparation: Preparation = DEFAULT_PREPARATION,
    choices: LabelOptions = DEFAULT_LABEL_OPTIONS,
) -> tuple[Classifier, Run]:
    """Create a classifier and queue its first run.

    Raises:
        NoServer: no server was given and none is set for embeddings.
        CannotTrain: the labels of the dataset do not allow it.
    """
    check_dataset(dataset, choices)
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
        options={
            "seed": seed,
            "balanced": balanced,
            **preparation.as_dict(),
            **choices.as_dict(),
        },
    )
    return classifier, start_run(classifier)


def start_run(classifier: Classifier) -> Run:
    """Queue a new run, or return the active one: pressing Train twice trains once.

    Raises:
        CannotTrain: the labels of the dataset do not allow it.
    """
    if classifier.dataset is not None:
        check_dataset(classifier.dataset, LabelOptions.read(classifier.options))
    try:
        with transaction.atomic():
            last = classifier.runs.aggregate(Max("number"))["number__max"] or 0
            run = Run.objects.create(
                classifier=classifier,
                number=last + 1,
                seed=classifier.options.get("seed", 0),
                options=classifier.options,
            )
            run.task = work.enqueue(TaskKind.TRAINING, run.pk, owner=classifier.owner)
            run.save(update_fields=["task"])
            return run
    except IntegrityError:
        return classifier.runs.get(status__in=ACTIVE)


@transaction.atomic
def cancel(record: Run | FilePrediction) -> None:
    """Cancel a run or a file: at once if no worker is at it, else before its next batch or fit."""
    if record.task is None or work.cancel(record.task):
        active = type(record).objects.filter(pk=record.pk, status__in=record.ACTIVE)
        active.update(status=Status.CANCELLED, finished=timezone.now())


@transaction.atomic
def promote(run: Run) -> None:
    """From now on this run answers, also when a newer one is trained.

    Raises:
        NotReady: it has no classifier.
    """
    if not run.is_ready:
        raise NotReady(f"Run {run.number} is {run.status}, so it has no version to make live.")
    newest = run.classifier.runs.filter(status=Status.READY).order_by("-number").first()
    Classifier.objects.filter(pk=run.classifier_id).update(
        current=run, pinned=newest is not None and newest.pk != run.pk
    )


def set_pinned(classifier: Classifier, pinned: bool) -> None:
    """Pin the live version until a person chooses another, or let a new one replace it unless it
    is worse on the same test rows."""
    Classifier.objects.filter(pk=classifier.pk).update(pinned=pinned)


@transaction.atomic
def set_thresholds(
    run: Run, *, unsure: float, kept: float, by_label: Mapping[str, float] | None = None
) -> Thresholds:
    """The thresholds of this run, and of those to come.

    Args:
        by_label: minimum confidence of single labels; None keeps those there are.

    Raises:
        NoRowResults: nothing is known of this run's rows, so `kept` means nothing.
        UnknownLabel: the run was not trained on a label of `by_label`.
    """
    known = row_results.load(Path(settings.CLASSIFIERS_DIR), run.artefact)
    trained = [entry["label"] for entry in run.per_class]
    if unknown := sorted(set(by_label or ()) - set(trained)):
        raise UnknownLabel(f"No label “{unknown[0]}”. Labels: {', '.join(trained[:20])}.")
    kept_labels = Thresholds.read(run.thresholds).by_label if by_label is None else by_label
    chosen = thresholds_for(
        known.train, unsure=unsure, kept=kept, labels=len(trained), by_label=kept_labels
    )
    Run.objects.filter(pk=run.pk).update(thresholds=chosen.as_dict())
    classifier = Classifier.objects.select_for_update().get(pk=run.classifier_id)
    gates: JsonObject = {"unsure": unsure, "kept": kept}
    if kept_labels:
        gates["labels"] = dict(kept_labels)
    classifier.options["gates"] = gates
    classifier.save(update_fields=["options"])
    return chosen


def delete_file(file: FilePrediction) -> None:
    """Delete a file's rows and its labels. A worker on it loses its lease and stops."""
    work.discard(TaskKind.FILE_PREDICTION, [file.pk])
    file_queue.remove_files(file)
    file.delete()


def delete_classifier(classifier: Classifier) -> None:
    """Delete it with its runs and their files. A worker on it loses its lease and stops."""
    runs = list(classifier.runs.only("pk"))
    files = list(classifier.files.only("pk"))
    with transaction.atomic():
        for kind in (TaskKind.TRAINING, TaskKind.CONVERSION):
            work.discard(kind, [run.pk for run in runs])
        work.discard(TaskKind.FILE_PREDICTION, (file.pk for file in files))
        classifier.delete()
    folder = Path(settings.CLASSIFIERS_DIR)
    for run in runs:
        predictor_file.remove(folder, run.artefact)
        row_results.remove(folder, run.artefact)
        convert.remove(folder, run.artefact)
    for file in files:
        for path in folder.glob(f"{file.artefact}.*"):
            path.unlink(missing_ok=True)
