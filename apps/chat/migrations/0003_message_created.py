from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    """An imported message keeps its time. Nothing changes in the database."""

    dependencies = [("chat", "0002_library")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="message",
                    name="created",
                    field=models.DateTimeField(default=timezone.now),
                )
            ]
        )
    ]
