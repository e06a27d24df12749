"""Store an uploaded file and queue its prediction."""

from pathlib import Path

from django.conf import settings
from django.core.files.base import File
from django.db import transaction

from apps import files
from apps.classifiers.errors import (
    NoColumn,
    NotReady,
    TooLarge,
)
from apps.classifiers.models import Classifier, FilePrediction, TaskKind
from apps.files import Layout
from apps.work import services as work

FORMS = ("csv", "jsonl")


def upload_path(file: FilePrediction) -> Path:
    return Path(settings.CLASSIFIERS_DIR) / f"{file.artefact}.upload"


def result_path(file: FilePrediction) -> Path:
    return Path(settings.CLASSIFIERS_DIR) / f"{file.artefact}.{file.file_format}"


def remove_files(file: FilePrediction) -> None:
    for path in (upload_path(file), result_path(file), partial_path(file)):
        path.unlink(missing_ok=True)


def partial_path(file: FilePrediction) -> Path:
    return result_path(file).with_suffix(".part")


def queue_file(
    classifier: Classifier, file: "File[bytes]", *, column: str = "", form: str = "csv"
) -> FilePrediction:
    """Store a file, check that it can be read, and queue it.

    Args:
        column: which holds the texts; empty to guess.

    Raises:
        NotReady: the classifier was never trained.
        TooLarge, FormatError, NoColumn: the file cannot be used. Nothing is kept of it.
    """
    if classifier.current is None:
        raise NotReady("This classifier is not trained yet.")
    name = Path((file.name or "file").replace("\\", "/").replace("\0", "")).name or "file"
    with transaction.atomic():
        made = FilePrediction.objects.create(
            classifier=classifier,
            run=classifier.current,
            file_name=name[:200],
            file_format=form if form in FORMS else "csv",
        )
        try:
            _store(file, upload_path(made))
            layout = files.detect_layout(upload_path(made), name=name)
            made.column = find_column(upload_path(made), layout, column)
            made.task = work.enqueue(TaskKind.FILE_PREDICTION, made.pk, owner=classifier.owner)
            made.save(update_fields=["column", "task"])
        except BaseException:
            remove_files(made)
            raise
    return made


def _store(file: "File[bytes]", path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    size = 0
    with path.open("xb") as out:
        path.chmod(0o600)
        for chunk in file.chunks():
            size += len(chunk)
            if size > settings.UPLOAD_LIMIT_BYTES:
                limit = settings.UPLOAD_LIMIT_BYTES // 1024**2
                raise TooLarge(
                    f"The file is larger than the limit of {limit} MB. Split it into several files."
                )
            out.write(chunk)


def find_column(path: Path, layout: Layout, wanted: str) -> str:
    """The column of the texts.

    Raises:
        NoColumn: the wanted one is not there.
    """
    if not wanted:
        if len(layout.columns) == 1:
            return layout.columns[0]
        return files.guess_mapping(layout.columns, files.sample_rows(path, layout)).text
    found = next((name for name in layout.columns if name == wanted.strip()), None)
    if found is None:
        there = ", ".join(f"“{name}”" for name in layout.columns[:20])
        raise NoColumn(f"No column “{wanted}”. Available columns: {there}.")
    return found
