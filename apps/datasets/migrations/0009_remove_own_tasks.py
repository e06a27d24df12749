from django.db import migrations

MOVED_TO_TASKS = (
    *("attempts", "cancelled", "done_rows", "done_share", "enqueued_at", "error"),
    *("import_options", "lease", "lease_until", "started", "state"),
)


class Migration(migrations.Migration):
    dependencies = [("datasets", "0008_tasks")]

    operations = [
        *(migrations.RemoveField(model_name="upload", name=name) for name in MOVED_TO_TASKS),
        migrations.DeleteModel(name="BulkChange"),
    ]
