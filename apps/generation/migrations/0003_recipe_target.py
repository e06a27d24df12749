import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0001_squashed"),
        ("llm", "0001_squashed"),
    ]

    operations = [
        migrations.AddField(
            model_name="savedrecipe",
            name="kept",
            field=models.BooleanField(default=True),  # the page has listed those there are
        ),
        migrations.AlterField(
            model_name="savedrecipe",
            name="kept",
            field=models.BooleanField(
                default=False,
                help_text="Saved on purpose, so the page lists it; else a job left it.",
            ),
        ),
        migrations.AddField(
            model_name="savedrecipe",
            name="server",
            field=models.ForeignKey(
                help_text="Empty: default.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="llm.server",
            ),
        ),
        migrations.AddField(
            model_name="savedrecipe",
            name="model",
            field=models.CharField(blank=True, default="", max_length=300),
        ),
    ]
