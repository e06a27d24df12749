"""Create a classifier from an exported file."""

from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.classifiers.models import (
    Classifier,
    Run,
    Status,
)
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.model_check import warnings
from apps.classifiers.prediction.predictor import ModelCard
from apps.classifiers.transfer import imports
from apps.servers.models import Use
from apps.servers.services import default_target


@transaction.atomic
def import_classifier(owner: User, data: bytes) -> tuple[Classifier, list[str]]:
    """A classifier from an exported file, ready to answer with vectors of the same model.

    Returns it with warnings: why it may not answer here, or not for long.

    Raises:
        BadFile: the file cannot be used.
        NoServer: none is set for embeddings.
    """
    stored, told = imports.read(data)
    server = default_target(Use.EMBEDDINGS).server
    classifier = Classifier.objects.create(
        owner=owner,
        name=told["name"],
        server=server,
        model=stored.card.embedding_model,
        options={"seed": 0, "balanced": False, **stored.card.preparation},
    )
    run = _create_run(classifier, stored.card, told)
    predictor_file.save(Path(settings.CLASSIFIERS_DIR), run.artefact, stored)
    classifier.current = run
    classifier.save(update_fields=["current"])
    return classifier, warnings(stored.card, server)


def _create_run(classifier: Classifier, card: ModelCard, told: imports.DisplayedFields) -> Run:
    """Create the run of an imported classifier, as if it were trained now."""
    now, gates = timezone.now(), told["gates"]
    return Run.objects.create(
        classifier=classifier,
        number=1,
        status=Status.READY,
        started=now,
        finished=now,
        train_rows=told["train_rows"],
        metrics=told["metrics"],
        thresholds=gates if set(gates) >= {"unsure", "kept"} else {},
        per_class=[
            dict.fromkeys(("precision", "recall", "f1")) | {"label": label, "support": 0}
            for label in card.labels
        ],
        embedding={
            "model": card.embedding_model,
            "fingerprint": card.embedding_fingerprint,
            "dimensions": card.dimensions,
            "imported": True,
        },
        fit={"labels": len(card.labels), "temperature": card.temperature},
        notes=["Imported. The metrics come from the file and were not measured here."],
    )
