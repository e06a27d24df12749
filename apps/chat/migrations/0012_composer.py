"""Add what the composer keeps: the next chat's settings, favourite models and prompts."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0011_answer_of_a_fallback"),
        ("llm", "0003_groups_and_fallbacks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Prompt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=60)),
                ("version", models.PositiveIntegerField(default=1)),
                ("text", models.TextField()),
            ],
            options={
                "ordering": ["name", "-version"],
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="is_draft",
            field=models.BooleanField(
                default=False,
                help_text="Holds the settings of its owner's next chat; has no messages.",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="other_models",
            field=models.JSONField(
                blank=True, default=list, help_text="Keys of models that answer next to the first."
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="preset",
            field=models.ForeignKey(
                blank=True,
                help_text="The preset that was applied last; its settings were copied.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.preset",
            ),
        ),
        migrations.AddField(
            model_name="preferences",
            name="favourite_models",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Keys of models, as in a conversation's other_models.",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_draft", True)), fields=("owner",), name="chat_one_draft"
            ),
        ),
        migrations.AddField(
            model_name="prompt",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="prompt",
            constraint=models.UniqueConstraint(
                fields=("owner", "name", "version"), name="chat_prompt_version"
            ),
        ),
    ]
