"""Large uploads: imported by a worker in pieces, hidden until complete, undone when it fails."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from pytest_django import Settings

from apps.datasets import services
from apps.datasets.imports import dataset_writer, import_queue, importing
from apps.datasets.imports.options import ImportOptions
from apps.datasets.models import Dataset, Example, Rejection, TaskKind, Upload, UploadState
from apps.files import ColumnMapping
from apps.files.readers import encoding as encodings
from apps.work import services as work
from apps.work.models import Task
from tests.datasets.factories import work_on

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 50


class Killed(BaseException):
    pass


def killed(*args: object) -> None:
    raise Killed


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_writer, "BATCH_ROWS", 10)


def queued(owner: User, content: str | bytes | None = None, **mapping: object) -> Upload:
    content = content or "text,label\n" + "".join(f"text {n},label {n % 3}\n" for n in range(ROWS))
    content = content if isinstance(content, bytes) else content.encode()
    file = SimpleUploadedFile("rows.csv", content)
    upload = services.store_upload(owner=owner, files=[file])
    chosen = ColumnMapping("text", "label", **mapping)  # type: ignore[arg-type]
    assert import_queue.enqueue_import(upload, ImportOptions("Rows", chosen))
    upload.refresh_from_db()
    return upload


def nothing_left() -> bool:
    return not any(model.objects.exists() for model in (Dataset, Example, Rejection))


def test_import_creates_the_dataset_and_its_rows(alice: User) -> None:
    upload = queued(alice)
    work_on(TaskKind.IMPORT, upload)
    upload.refresh_from_db()
    dataset = Dataset.objects.owned_by(alice).get()
    assert (upload.state, upload.dataset, upload.done_share) == (UploadState.DONE, dataset, 1.0)
    assert (dataset.rows, dataset.label_counts["label 0"], dataset.next_index) == (ROWS, 17, ROWS)
    assert list(dataset.examples.values_list("index", flat=True)) == list(range(ROWS))
    assert not upload.path.exists()
    work_on(TaskKind.IMPORT, upload)  # told twice: done once
    assert Dataset.objects.count() == 1


def test_the_encoding_is_settled_by_all_of_a_large_file(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "SAMPLE_BYTES", 900)
    monkeypatch.setattr(encodings, "CHUNK_BYTES", 300)
    monkeypatch.setattr(encodings, "PIECE_BYTES", 100)
    plain = b"text,label\n" + b"plain,a\n" * 60
    work_on(TaskKind.IMPORT, queued(alice, plain + b"caf\xe9,b\n" + b"plain,a\n" * 500))
    dataset = Dataset.objects.owned_by(alice).get()
    assert dataset.rejected_count == 0
    assert dataset.examples.filter(text="café").count() == 1
    assert "Windows-1252" in dataset.notes[0]


def test_pressing_import_twice_imports_once(alice: User) -> None:
    upload = queued(alice)
    assert not import_queue.enqueue_import(
        upload, ImportOptions("Again", ColumnMapping("text", "label"))
    )


def test_dataset_is_hidden_until_its_import_is_complete(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = queued(alice)
    seen: list[tuple[int, int, float]] = []
    write = dataset_writer.DatasetWriter.write

    def look(self: dataset_writer.DatasetWriter, *args: object, **kwargs: object) -> None:
        write(self, *args, **kwargs)  # type: ignore[arg-type]
        visible = Dataset.objects.owned_by(alice).count()
        seen.append((visible, Example.objects.count(), Upload.objects.get().done_share))

    monkeypatch.setattr(dataset_writer.DatasetWriter, "write", look)
    work_on(TaskKind.IMPORT, upload)
    assert [(visible, rows) for visible, rows, _ in seen] == [(0, 10 * n) for n in range(1, 6)]
    shares = [share for *_, share in seen]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,label\n" + ",a\n" * 30, "All 30 rows were rejected"),
        ("text,label\n" + "".join(f"t{n},l{n}\n" for n in range(1_100)), "more than 1,000"),
    ],
)
def test_one_that_fails_leaves_nothing_but_its_reason(alice: User, content: str, says: str) -> None:
    upload = queued(alice, content)
    work_on(TaskKind.IMPORT, upload)
    upload.refresh_from_db()
    assert upload.state == UploadState.FAILED
    assert says in upload.error
    assert nothing_left()
    assert upload.path.exists()  # the columns can be chosen again
    assert import_queue.enqueue_import(
        upload, ImportOptions("Again", ColumnMapping("label", "text"))
    )


def test_one_that_is_all_wrong_is_not_read_to_its_end(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_writer, "MAX_REJECTIONS", 25)
    upload = queued(alice, "text,label\n" + ",a\n" * 500)
    work_on(TaskKind.IMPORT, upload)
    upload.refresh_from_db()
    assert "All 30 rows were rejected" in upload.error
    assert nothing_left()


def test_import_reports_a_missing_file(alice: User) -> None:
    upload = queued(alice)
    upload.path.unlink()
    with pytest.raises(FileNotFoundError):
        work_on(TaskKind.IMPORT, upload)
    upload.refresh_from_db()
    assert "Something went wrong" in upload.error
    assert nothing_left()


def test_cancelling_one_that_waits(alice: User) -> None:
    upload = queued(alice)
    importing.cancel_import(upload)
    assert not Upload.objects.exists()
    assert not Task.objects.exists()
    assert nothing_left()


def test_cancelling_one_under_way(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = queued(alice)
    write = dataset_writer.DatasetWriter.write

    def cancel(self: dataset_writer.DatasetWriter, *args: object, **kwargs: object) -> None:
        write(self, *args, **kwargs)  # type: ignore[arg-type]
        if Example.objects.count() == 20:
            importing.cancel_import(Upload.objects.get())

    monkeypatch.setattr(dataset_writer.DatasetWriter, "write", cancel)
    work_on(TaskKind.IMPORT, upload)
    assert nothing_left()
    assert not Upload.objects.exists()
    assert not upload.path.exists()


def test_a_worker_that_was_thought_dead_changes_nothing(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = queued(alice)
    pieces = importing.read_chunks
    taken_over: list[int] = []

    def lose(*args: object) -> Iterator[object]:
        for place, piece in enumerate(pieces(*args)):  # type: ignore[arg-type]
            if place == 3 and not taken_over:  # the lease has run out, and another takes it
                taken_over.append(place)
                Task.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
                work_on(TaskKind.IMPORT, upload)
            yield piece

    monkeypatch.setattr(importing, "read_chunks", lose)
    work_on(TaskKind.IMPORT, upload)
    dataset = Dataset.objects.owned_by(alice).get()
    assert dataset.rows == Example.objects.count() == ROWS
    assert Dataset.objects.count() == 1


def test_a_killed_worker_costs_nothing(alice: User, settings: Settings) -> None:
    """A process is killed in the middle; the next one removes what it wrote and begins again."""
    upload = queued(alice)
    assert upload.task is not None
    code = (
        "import os, signal, django; django.setup()\n"
        "from django.conf import settings\n"
        f"settings.UPLOADS_DIR = {str(settings.UPLOADS_DIR)!r}\n"
        "from apps.datasets.imports import dataset_writer\n"
        "from apps.work import services as work\n"
        "dataset_writer.BATCH_ROWS = 10\n"
        "write = dataset_writer.DatasetWriter.write\n"
        "def die(self, *a, **k):\n"
        "    if self.dataset.examples.count() == 30: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    write(self, *a, **k)\n"
        "dataset_writer.DatasetWriter.write = die\n"
        f"work.run({upload.task.pk})\n"
    )
    name = settings.DATABASES["default"]["NAME"]
    engine = settings.DATABASES["default"]["ENGINE"]
    if "sqlite" not in engine:
        pytest.skip("the child would need the test database's address")
    env = os.environ | {
        "DATABASE_URL": f"sqlite:///{name}",
        "DJANGO_SETTINGS_MODULE": "workbench.settings",
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=Path.cwd(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert Example.objects.count() == 30
    assert not Dataset.objects.owned_by(alice).exists()
    assert work.sweep() == []  # it may still live
    Task.objects.update(
        lease_until=timezone.now() - timedelta(minutes=1),
        enqueued_at=timezone.now() - timedelta(minutes=2),
    )
    assert work.sweep() == [upload.task.pk]
    work_on(TaskKind.IMPORT, upload)
    assert Dataset.objects.owned_by(alice).get().rows == Example.objects.count() == ROWS
    assert Dataset.objects.count() == 1


def test_an_import_that_kills_its_workers_is_given_up(alice: User) -> None:
    upload = queued(alice)
    Task.objects.update(attempts=work.MAX_ATTEMPTS)
    work_on(TaskKind.IMPORT, upload)
    upload.refresh_from_db()
    assert "crashed 3 times" in upload.error
    assert nothing_left()


def test_several_files_become_one_dataset(alice: User) -> None:
    files = [
        SimpleUploadedFile("my_train.csv", b"text;label\nhello;a\nbye;b\n;b\n"),
        SimpleUploadedFile("my-test.jsonl", b'{"label": "a", "text": "see you", "id": 7}\n'),
    ]
    upload = services.store_upload(owner=alice, files=files)
    assert [part["split"] for part in upload.files] == ["train", "test"]
    dataset = services.import_upload(upload, ImportOptions("Both", ColumnMapping("text", "label")))
    assert dataset.split_counts == {"train": 2, "test": 1}
    assert dataset.extra_columns == ["id"]
    origins = dataset.examples.order_by("index").values_list("origin", flat=True)
    assert list(origins) == ["my_train.csv, row 2", "my_train.csv, row 3", "my-test.jsonl, row 1"]
    rejection = dataset.rejections.get()
    assert (rejection.file, rejection.row) == ("my_train.csv", 4)
    assert "semicolon" in dataset.notes[0]
    assert "JSONL" in dataset.notes[1]


def test_a_file_of_several_that_lacks_a_column_is_named(alice: User) -> None:
    files = [
        SimpleUploadedFile("a.csv", b"text,label\nhello,a\n"),
        SimpleUploadedFile("b.csv", b"satz,label\nhallo,a\n"),
    ]
    upload = services.store_upload(owner=alice, files=files)
    with pytest.raises(importing.FormatError, match=r"b.csv: No column “text”"):
        services.import_upload(upload, ImportOptions("x", ColumnMapping("text", "label")))
    assert nothing_left()


def test_two_labels_are_joined_and_other_columns_kept(alice: User) -> None:
    content = b"text,kind,sub,id\nhello, card ,lost,7\nbye,card,,8\nhm,,,9\n"
    upload = services.store_upload(owner=alice, files=[SimpleUploadedFile("a.csv", content)])
    mapping = ColumnMapping("text", "kind", second_label="sub", keep_unlabelled=True)
    dataset = services.import_upload(upload, ImportOptions("x", mapping))
    assert dataset.label_counts == {"card / lost": 1, "card": 1}
    assert dataset.unlabelled == 1
    assert [row.meta for row in dataset.examples.order_by("index")] == [
        {"id": "7"}, {"id": "8"}, {"id": "9"},
    ]  # fmt: skip


def test_cleaned_labels_are_said(alice: User) -> None:
    content = b" text ,label\nhello, a  b \nbye,a b\n"
    upload = services.store_upload(owner=alice, files=[SimpleUploadedFile("a.csv", content)])
    dataset = services.import_upload(upload, ImportOptions("x", ColumnMapping("text", "label")))
    assert dataset.label_counts == {"a b": 2}
    assert dataset.notes[1:] == [
        "Extra spaces removed from 1 column name.",
        "Extra spaces removed from 1 label.",
    ]


def test_plain_text_has_no_labels_yet(alice: User) -> None:
    file = SimpleUploadedFile("texts.txt", b"Hello, you\n\nBye, me\n")
    upload = services.store_upload(owner=alice, files=[file])
    dataset = services.import_upload(upload, ImportOptions("x", ColumnMapping("text", None)))
    assert (dataset.rows, dataset.unlabelled, dataset.label_counts) == (2, 2, {})
    assert list(services.read_examples(dataset))[1].text == "Bye, me"


def test_cancelling_one_whose_worker_died_removes_its_rows(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = queued(alice)
    monkeypatch.setattr(dataset_writer.DatasetWriter, "finish", killed)
    with pytest.raises(Killed):
        work_on(TaskKind.IMPORT, upload)
    Task.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    importing.cancel_import(Upload.objects.get())
    assert nothing_left()
    assert not Upload.objects.exists()


def test_an_upload_removed_under_way_leaves_its_rows_to_a_worker(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = queued(alice)
    monkeypatch.setattr(dataset_writer.DatasetWriter, "finish", killed)
    with pytest.raises(Killed):
        work_on(TaskKind.IMPORT, upload)
    dataset = Dataset.objects.get()
    services.remove_upload(Upload.objects.get())
    assert not Dataset.objects.owned_by(alice).exists()
    work_on(TaskKind.REMOVAL, dataset)
    assert nothing_left()
    assert not Task.objects.exists()


def test_many_rows_are_not_imported_while_a_person_waits(alice: User) -> None:
    """A small Parquet file may hold a million rows."""
    for rows, is_small in ((100, True), (import_queue.SMALL_ROWS + 1, False)):
        out = io.BytesIO()
        pq.write_table(pa.table({"text": ["where is it"] * rows, "label": ["a"] * rows}), out)
        sent = SimpleUploadedFile("a.parquet", out.getvalue())
        upload = services.store_upload(owner=alice, files=[sent])
        assert upload.size < import_queue.SMALL_BYTES
        assert import_queue.is_small(upload) is is_small


def test_a_small_import_is_not_one_transaction(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker continues if its process is killed; nobody sees half of it."""
    content = "text,label\n" + "".join(f"text {n},a\n" for n in range(40))
    upload = services.store_upload(
        owner=alice, files=[SimpleUploadedFile("a.csv", content.encode())]
    )
    options = ImportOptions("x", ColumnMapping("text", "label"))
    finish = dataset_writer.DatasetWriter.finish

    def die(*args: object) -> None:
        assert not Dataset.objects.owned_by(alice).exists()
        assert Dataset.objects.get().examples.count() == 40
        raise Killed

    monkeypatch.setattr(dataset_writer.DatasetWriter, "finish", die)
    with pytest.raises(Killed):
        importing.import_upload(upload, options)
    assert not Dataset.objects.exists()
    upload.refresh_from_db()
    assert upload.state == UploadState.WAITING
    monkeypatch.setattr(dataset_writer.DatasetWriter, "finish", finish)
    assert importing.import_upload(upload, options).rows == 40
    assert not Upload.objects.exists()
