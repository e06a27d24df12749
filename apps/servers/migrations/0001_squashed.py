import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("llm", "0001_initial"), ("llm", "0002_server_facts")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Server",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "base_url",
                    models.CharField(
                        help_text="Ends in /v1",
                        max_length=500,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^https?://[\\w.:\\[\\]-]+(/[\\w./~-]*)?$",
                                "Enter an address such as http://127.0.0.1:8080/v1.",
                            )
                        ],
                    ),
                ),
                ("encrypted_key", models.TextField(blank=True, default="")),
                (
                    "parallel",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Slots, stated by a person where the server does not say.",
                        null=True,
                    ),
                ),
                (
                    "from_settings",
                    models.BooleanField(
                        default=False,
                        help_text="Named by LLM_BASE_URL or EMBED_BASE_URL and kept in step with it.",
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("llama-server", "llama-server"),
                            ("router", "llama-server router"),
                            ("llama-swap", "llama-swap"),
                            ("olla", "Olla"),
                            ("litellm", "LiteLLM"),
                            ("openai", "OpenAI-compatible"),
                        ],
                        default="openai",
                        max_length=20,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ready", "Ready"),
                            ("loading", "Loading"),
                            ("unreachable", "Unreachable"),
                            ("unauthorized", "Unauthorized"),
                            ("unknown", "Unknown"),
                            ("stuck", "Stuck"),
                        ],
                        default="unknown",
                        max_length=20,
                    ),
                ),
                ("facts", models.JSONField(default=dict)),
                (
                    "seen",
                    models.DateTimeField(
                        blank=True, help_text="When the last look began.", null=True
                    ),
                ),
                (
                    "context_stated",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Tokens of one slot, where the server does not say.",
                        null=True,
                    ),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="Looks in a row that failed."),
                ),
                (
                    "kv_unified",
                    models.BooleanField(
                        blank=True,
                        help_text="Whether its slots share one KV cache, stated by a person.",
                        null=True,
                    ),
                ),
                (
                    "next_look",
                    models.DateTimeField(
                        blank=True,
                        help_text="Not to be asked again before; empty: by the facts' age.",
                        null=True,
                    ),
                ),
                ("state_since", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="DefaultServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "use",
                    models.CharField(
                        choices=[
                            ("chat", "Chat"),
                            ("embeddings", "Embeddings"),
                            ("generation", "Generation"),
                        ],
                        max_length=20,
                        unique=True,
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True, help_text="Empty: the first that suits the use.", max_length=300
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="defaults",
                        to="llm.server",
                    ),
                ),
            ],
        ),
    ]
