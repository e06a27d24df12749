"""Leaves work half done as version 3e38b68 did, and does it as the version of now.

python -m tests.upgrade.running_work leave     on a folder of 3e38b68, before `migrate`
python -m tests.upgrade.running_work finish    after it; prints what became of it as JSON
"""

import json
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import django

BEFORE = [("datasets", "0005_bulk_changes")]
ROWS = 30
CHUNK = 10


def leave() -> None:
    from django.conf import settings
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor
    from django.utils import timezone

    models = MigrationExecutor(connection).loader.project_state(BEFORE).apps.get_model
    alice = models("auth", "User").objects.get(username="alice")
    soon = timezone.now() + timedelta(seconds=120)
    content = "text,label\n" + "".join(f"text {n},label\n" for n in range(ROWS))
    mapping = {"text": "text", "label": "label", "split": None, "second_label": None}
    mapping |= {"keep_unlabelled": False, "keep_extra": True}

    def dataset(name: str, state: str, rows: int) -> object:
        made = models("datasets", "Dataset").objects.create(
            owner_id=alice.pk, name=name, origin="x", state=state, rows=rows, next_index=rows
        )
        models("datasets", "Example").objects.bulk_create(
            models("datasets", "Example")(dataset=made, index=n, text=f"text {n}", label="a")
            for n in range(rows)
        )
        return made

    half = dataset("Running", "importing", CHUNK)
    for name, values in {
        "Running": {"state": "importing", "lease_until": soon, "dataset": half, "attempts": 1},
        "Queued": {"state": "queued"},
        "Without its file": {"state": "importing", "lease_until": soon},
        "Cancelled": {"state": "importing", "lease_until": soon, "cancelled": True},
        "Failed": {"state": "failed", "error": "No memory left."},
    }.items():
        upload = models("datasets", "Upload").objects.create(
            owner_id=alice.pk,
            file_name=f"{name}.csv",
            size=len(content),
            plan={"name": name, "mapping": mapping, "said": {}},
            **values,
        )
        path = Path(settings.UPLOADS_DIR) / str(upload.pk)
        path.parent.mkdir(parents=True, exist_ok=True)
        if name != "Without its file":
            path.write_text(content)
    dataset("Deleted", "deleting", CHUNK)
    dataset("Cut off", "importing", CHUNK)
    changed = dataset("Changed", "ready", ROWS)
    models("datasets", "Dataset").objects.filter(name="Changed").update(label_counts={"a": ROWS})
    models("datasets", "BulkChange").objects.create(
        dataset=changed,
        kind="merge",
        args={"labels": ["a"], "into": "b"},
        by_id=alice.pk,
        lease_until=soon,
        attempts=1,
    )
    # One chunk is changed, of a revision that is no version yet.
    revision = models("datasets", "Revision").objects.create(
        dataset=changed, number=1, what="x", complete=False
    )
    models("datasets", "Change").objects.bulk_create(
        models("datasets", "Change")(
            revision=revision, index=n, before={"label": "a"}, after={"label": "b"}
        )
        for n in range(CHUNK)
    )
    changed.examples.filter(index__lt=CHUNK).update(label="b")  # type: ignore[attr-defined]


def finish() -> None:
    from apps.datasets.models import Dataset, Upload
    from apps.work import services as work
    from apps.work.models import Task

    with patch("apps.work.tasks.run_task.delay", side_effect=_run):
        announced = work.sweep()
    uploads = Upload.objects.select_related("task")
    found = {
        "announced": len(announced),
        "active": Task.objects.active().count(),
        "uploads": {upload.file_name: [upload.state, upload.error] for upload in uploads},
        "datasets": {
            dataset.name: [dataset.state, dataset.rows, dataset.examples.count(), dataset.labels]
            for dataset in Dataset.objects.all()
        },
    }
    json.dump(found, sys.stdout)


def _run(task_id: int) -> None:
    from apps.work import services as work

    with suppress(FileNotFoundError):  # the worker logs it
        work.run(task_id)


if __name__ == "__main__":
    django.setup()
    {"leave": leave, "finish": finish}[sys.argv[1]]()
