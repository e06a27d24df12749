"""Datasets to work on."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.datasets.models import Dataset, TaskKind, Upload
from apps.datasets.services import create_dataset, store_upload
from apps.files import ExampleRow
from apps.work import services as work
from apps.work.models import Task

Given = tuple[str, str] | tuple[str, str, str]


def create(owner: User, rows: Iterable[Given], name: str = "Some") -> Dataset:
    """A dataset of (text, label) or (text, label, split); the label may be empty."""
    given = [ExampleRow(row[0], row[1], row[2] if len(row) > 2 else None) for row in rows]
    return create_dataset(owner=owner, name=name, rows=given, origin="tests", unlabelled=True)


def create_many(owner: User, count: int = 120, labels: int = 3) -> Dataset:
    return create(owner, ((f"text {n}", f"label {n % labels}") for n in range(count)), "Many")


def shown(dataset: Dataset) -> list[tuple[int, str, str, str]]:
    """The rows as they are: place, text, label, split."""
    found = dataset.examples.order_by("index").values_list("index", "text", "label", "split")
    return list(found)


def upload(owner: User, content: bytes, name: str = "rows.csv") -> Upload:
    return store_upload(owner=owner, files=[SimpleUploadedFile(name, content)])


def import_task(upload: Upload, **values: Any) -> Task:
    """Give an upload the task of its import, with these values."""
    upload.task = Task.objects.create(
        kind=TaskKind.IMPORT, subject=str(upload.pk), owner=upload.owner, **values
    )
    upload.save(update_fields=["task"])
    return upload.task


def change_task(dataset: Dataset, **values: Any) -> Task:
    """The task of a change of many rows, with these values; nothing is changed."""
    options = {"change": "merge", "args": {"labels": [], "into": "x"}}
    return Task.objects.create(
        kind=TaskKind.CHANGE,
        subject=str(dataset.pk),
        owner=dataset.owner,
        **{"options": options} | values,
    )


def work_on(kind: TaskKind, subject: Upload | Dataset) -> None:
    """Do the task of a subject as a worker would, if there is one."""
    work.run_subject(kind, subject.pk)
