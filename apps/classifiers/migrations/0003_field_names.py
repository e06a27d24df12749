from django.db import migrations

MOVED_TO_TASKS = (
    *("attempts", "cancel_requested", "done", "lease", "lease_until", "total", "woken"),
)


class Migration(migrations.Migration):
    dependencies = [("classifiers", "0002_tasks")]

    operations = [
        migrations.RemoveField(model_name=model, name=name)
        for model in ("run", "fileprediction")
        for name in MOVED_TO_TASKS
    ]
