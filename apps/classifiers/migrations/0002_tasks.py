"""Give every active run and every file a durable task, so that the sweep resumes what waits."""

import django.db.models.deletion
from django.db import migrations, models

FILE_STATES = {"queued": "queued", "running": "queued", "ready": "done"}


def create_tasks(apps, schema_editor):
    Task = apps.get_model("work", "Task")
    Run = apps.get_model("classifiers", "Run")
    FilePrediction = apps.get_model("classifiers", "FilePrediction")

    def add(kind, row, state):
        row.task = Task.objects.create(
            kind=kind,
            subject=str(row.pk),
            owner_id=row.classifier.owner_id,
            state=state,
            attempts=row.attempts,
            cancel_requested=row.cancel_requested,
            done=row.done,
            total=row.total,
            error=row.error,
            started=row.started,
            finished=row.finished,
        )
        row.save(update_fields=["task"])

    active = Run.objects.filter(status__in=["queued", "embedding", "fitting", "evaluating"])
    for run in active.select_related("classifier"):
        add("classifiers.training", run, "queued")
    for file in FilePrediction.objects.select_related("classifier"):
        add("classifiers.file_prediction", file, FILE_STATES.get(file.status, file.status))


class Migration(migrations.Migration):
    dependencies = [("classifiers", "0001_squashed"), ("work", "0001_initial")]

    operations = [
        *(
            migrations.AddField(
                model_name=model,
                name="task",
                field=models.OneToOneField(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to="work.task",
                ),
            )
            for model in ("run", "fileprediction")
        ),
        migrations.RunPython(create_tasks, migrations.RunPython.noop),
    ]
