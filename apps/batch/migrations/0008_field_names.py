import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("batch", "0007_estimated_tokens")]

    operations = [
        migrations.RenameField("batch", "worked_s", "active_seconds"),
        migrations.RenameField("batch", "made_before", "rows_before_resume"),
        migrations.RenameField("batch", "day_began_at", "tokens_before_day"),
        migrations.RenameField("batch", "watched_since", "yield_counted_since"),
        migrations.RenameField("item", "sketch", "minhash"),
        migrations.RenameModel("Course", "ThroughputHistory"),
        migrations.RenameField("throughputhistory", "trial", "probe"),
        migrations.RenameField("throughputhistory", "tried", "probed_at"),
        migrations.AlterField(
            "throughputhistory",
            "batch",
            models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="throughput",
                to="batch.batch",
            ),
        ),
    ]
