"""Give what runs or failed in the background a durable task, so that the sweep resumes it."""

from datetime import timedelta

import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone

QUEUED, DONE, FAILED = "queued", "done", "failed"
STATES = {"queued": QUEUED, "importing": QUEUED, "done": DONE, "failed": FAILED}


def create_tasks(apps, schema_editor):
    Task = apps.get_model("work", "Task")
    Dataset = apps.get_model("datasets", "Dataset")
    Upload = apps.get_model("datasets", "Upload")
    long_ago = timezone.now() - timedelta(days=1)  # the first sweep announces it
    for upload in Upload.objects.exclude(state="waiting"):
        state = STATES[upload.state]
        rows = upload.done_rows if state == DONE else 0
        upload.task = Task.objects.create(
            kind="datasets.import",
            subject=str(upload.pk),
            owner_id=upload.owner_id,
            options=upload.import_options,
            state=state,
            error=upload.error,
            attempts=upload.attempts,
            cancel_requested=upload.cancelled,
            done=rows,
            total=rows,
            enqueued_at=long_ago,
        )
        upload.save(update_fields=["task"])
    for change in apps.get_model("datasets", "BulkChange").objects.all():
        Task.objects.create(
            kind="datasets.change",
            subject=str(change.dataset_id),
            owner_id=change.by_id,
            options={"change": change.kind, "args": change.args},
            state=FAILED if change.error else QUEUED,
            error=change.error,
            attempts=change.attempts,
            done=change.done,
            total=change.total,
            enqueued_at=long_ago,
        )
    # No process creates a dataset now: whatever is half there and of no upload was cut off.
    imported = Upload.objects.exclude(dataset=None).values("dataset")
    unfinished = Dataset.objects.exclude(state="ready").exclude(pk__in=imported)
    for dataset in unfinished:
        Task.objects.create(
            kind="datasets.removal",
            subject=str(dataset.pk),
            owner_id=dataset.owner_id,
            enqueued_at=long_ago,
        )


class Migration(migrations.Migration):
    dependencies = [("datasets", "0007_text_keys"), ("work", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="upload",
            name="task",
            field=models.OneToOneField(
                help_text="Its import, once started. Its options are as `ImportOptions` reads "
                "them.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="work.task",
            ),
        ),
        migrations.RunPython(create_tasks, migrations.RunPython.noop),
    ]
