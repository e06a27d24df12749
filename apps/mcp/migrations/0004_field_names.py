import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp", "0003_error_words"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="toolserver",
            name="transport",
            field=models.CharField(
                choices=[("http", "Streamable HTTP"), ("stdio", "Command on this machine")],
                default="http",
                max_length=10,
            ),
        ),
        migrations.RenameField("toolserver", "looked", "checked_at"),
        migrations.RenameField("toolserver", "left_out", "skipped_tools"),
        migrations.RenameField("toolserver", "error_words", "error_output"),
        migrations.AlterField(
            model_name="toolserver",
            name="checked_at",
            field=models.DateTimeField(
                blank=True, help_text="When it last listed its tools.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="toolserver",
            name="error_output",
            field=models.TextField(
                blank=True, default="", help_text="Last output of its command. May contain a key."
            ),
        ),
        migrations.AlterField(
            model_name="toolserver",
            name="owner",
            field=models.ForeignKey(
                editable=False,
                help_text="The only person who sees and uses it. Empty: shared, and managed by admins.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="toolserver",
            name="skipped_tools",
            field=models.JSONField(
                blank=True, default=list, help_text="Sentences: the tool and the reason."
            ),
        ),
    ]
