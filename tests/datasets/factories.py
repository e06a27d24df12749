"""Datasets to work on."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.datasets.models import Dataset, Upload
from apps.datasets.services import create_dataset, store_upload
from apps.files import ExampleRow

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
