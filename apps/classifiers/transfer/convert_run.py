"""Writes the files of other libraries for an older or an imported classifier, by a worker."""

from pathlib import Path

from django.conf import settings

from apps.classifiers.models import Run, TaskKind
from apps.classifiers.prediction import predictor_file
from apps.classifiers.transfer import convert
from apps.work import services as work
from apps.work.services import HeldTask


def queue_conversion(run: Run) -> None:
    """Have a worker write the files; nothing more if one does already."""
    work.enqueue(TaskKind.CONVERSION, run.pk, owner=run.classifier.owner)


def convert_run(held: HeldTask) -> None:
    """Write what is not there yet: the handler of `TaskKind.CONVERSION`."""
    run = Run.objects.filter(pk=held.subject).only("pk").first()
    if run is not None:
        folder = Path(settings.CLASSIFIERS_DIR)
        convert.write(folder, run.artefact, predictor_file.load(folder, run.artefact))
