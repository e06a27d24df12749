from django.db import migrations, models

MOVED_TO_TASKS = (
    *("attempts", "cancel_requested", "done", "lease", "lease_until", "total", "woken"),
)
RENAMED = {
    "queue": "review_queue",
    "gates": "thresholds",
    "curve": "learning_curve",
    "left_out": "skipped_rows",
    "confused": "confused_pairs",
}


class Migration(migrations.Migration):
    dependencies = [("classifiers", "0002_tasks")]

    operations = [
        *(
            migrations.RemoveField(model_name=model, name=name)
            for model in ("run", "fileprediction")
            for name in MOVED_TO_TASKS
        ),
        *(
            migrations.RenameField(model_name="run", old_name=old, new_name=new)
            for old, new in RENAMED.items()
        ),
        migrations.AlterField(
            "run",
            "leaks",
            models.JSONField(default=dict, help_text="See `leaks.find_leaks`."),
        ),
        migrations.AlterField(
            "run",
            "review_queue",
            models.JSONField(default=list, help_text="See `review_queue.Suggestion`."),
        ),
        migrations.AlterField(
            "run",
            "thresholds",
            models.JSONField(default=dict, help_text="See `thresholds.Thresholds`."),
        ),
        migrations.RenameField(
            model_name="fileprediction", old_name="form", new_name="file_format"
        ),
    ]
