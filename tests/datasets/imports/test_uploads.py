"""Storing uploaded files: their names, their limits, their removal."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from pytest_django import Settings

from apps.datasets.errors import UploadTooLarge
from apps.datasets.imports import uploads
from apps.datasets.models import Upload, UploadState
from apps.work.models import Task, TaskState
from tests.datasets import factories


def sent(name: str, size: int = 10) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, b"x" * size)


def stored_files(settings: Settings) -> list[Path]:
    folder = Path(settings.UPLOADS_DIR)
    return sorted(folder.iterdir()) if folder.exists() else []


def test_store_upload_keeps_each_file_under_a_generated_name(alice: User) -> None:
    upload = uploads.store_upload(owner=alice, files=[sent("a.csv", 3), sent("b_val.csv", 4)])
    assert [upload.path_of(place).read_bytes() for place in (0, 1)] == [b"xxx", b"xxxx"]
    assert (upload.file_name, upload.size) == ("a.csv, b_val.csv", 7)
    assert upload.files == [
        {"name": "a.csv", "size": 3, "split": ""},
        {"name": "b_val.csv", "size": 4, "split": "validation"},
    ]


def test_store_upload_of_one_file_has_no_parts(alice: User) -> None:
    upload = uploads.store_upload(owner=alice, files=[sent("my_test.csv")])
    assert upload.parts == []
    assert upload.files == [{"name": "my_test.csv", "size": 10, "split": ""}]


def test_store_upload_bounds_a_long_name(alice: User) -> None:
    upload = uploads.store_upload(owner=alice, files=[sent(f"{'n' * 240}.csv"), sent("b.csv")])
    assert len(upload.file_name) == 200
    assert len(upload.files[0]["name"]) == 200


def test_store_upload_counts_the_bytes_of_all_files(alice: User, settings: Settings) -> None:
    settings.UPLOAD_LIMIT_BYTES = 15
    with pytest.raises(UploadTooLarge, match="larger than the limit"):
        uploads.store_upload(owner=alice, files=[sent("a.csv"), sent("b.csv")])
    assert stored_files(settings) == []
    assert not Upload.objects.exists()


def test_remove_upload_removes_all_its_files(alice: User, settings: Settings) -> None:
    upload = uploads.store_upload(owner=alice, files=[sent("a.csv"), sent("b.csv")])
    assert len(stored_files(settings)) == 2
    uploads.remove_upload(upload)
    assert stored_files(settings) == []
    assert not Upload.objects.exists()


def test_old_uploads_go_at_the_next_one_unless_they_are_imported(
    alice: User, bob: User, settings: Settings
) -> None:
    old = [factories.upload(alice, b"text\nhello\n", f"{n}.csv") for n in range(3)]
    factories.import_task(old[1], state=TaskState.FAILED)
    factories.import_task(old[2], state=TaskState.RUNNING)
    theirs = factories.upload(bob, b"text\nhello\n")
    Upload.objects.update(created=timezone.now() - uploads.UPLOAD_LIFETIME - timedelta(minutes=1))
    new = factories.upload(alice, b"text\nhello\n")
    assert set(Upload.objects.all()) == {old[2], theirs, new}
    assert len(stored_files(settings)) == 3


def test_list_imports_holds_those_in_progress_or_failed(alice: User, bob: User) -> None:
    Upload.objects.create(owner=alice, file_name="waiting", size=1)
    for state in TaskState:
        upload = Upload.objects.create(owner=alice, file_name="x", size=1)
        factories.import_task(upload, state=state)
    assert {upload.state for upload in uploads.list_imports(alice)} == {
        UploadState.QUEUED,
        UploadState.IMPORTING,
        UploadState.FAILED,
    }
    assert uploads.list_imports(bob) == []


@pytest.mark.parametrize(("share", "seconds"), [(0.25, 30), (0.5, 10), (1.0, 0)])
def test_eta_follows_the_rate_so_far(share: float, seconds: float) -> None:
    now = timezone.now()
    task = Task(done=share * 100, total=100, started=now - timedelta(seconds=10))
    upload = Upload(task=task)
    assert upload.eta(now) == pytest.approx(seconds)


def test_eta_is_unknown_before_the_first_rows() -> None:
    assert Upload().eta() is None
    assert Upload(task=Task(started=timezone.now())).eta_s is None
