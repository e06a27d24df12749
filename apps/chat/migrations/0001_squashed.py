import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("chat", "0001_initial"),
        ("chat", "0002_library"),
        ("chat", "0003_message_created"),
        ("chat", "0004_cache_record"),
        ("chat", "0005_tools"),
        ("chat", "0006_cuts_and_formats"),
    ]

    initial = True

    dependencies = [
        ("llm", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("title", models.CharField(blank=True, max_length=80)),
                (
                    "model",
                    models.CharField(
                        blank=True, help_text="Empty: the server's default.", max_length=300
                    ),
                ),
                ("params", models.JSONField(blank=True, default=dict)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("archived", models.BooleanField(default=False)),
                ("pinned", models.BooleanField(default=False)),
                ("removed", models.DateTimeField(blank=True, null=True)),
                (
                    "source",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="What it was imported from.",
                        max_length=200,
                    ),
                ),
                (
                    "tools",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What its model may call: see `tools.settings`.",
                    ),
                ),
                (
                    "response_format",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="As the OpenAI API has it. Empty: free text.",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: the default server for chat.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="llm.server",
                    ),
                ),
            ],
            options={
                "ordering": ["-updated", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "User"), ("assistant", "Assistant")], max_length=10
                    ),
                ),
                ("content", models.TextField(blank=True, default="")),
                ("reasoning", models.TextField(blank=True, default="")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("streaming", "Streaming"),
                            ("complete", "Complete"),
                            ("stopped", "Stopped"),
                            ("interrupted", "Interrupted"),
                            ("failed", "Failed"),
                        ],
                        default="complete",
                        max_length=12,
                    ),
                ),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "request",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What it was asked with beside the conversation's own.",
                    ),
                ),
                ("model", models.CharField(blank=True, default="", max_length=300)),
                ("error_code", models.CharField(blank=True, default="", max_length=50)),
                ("error_detail", models.TextField(blank=True, default="")),
                ("finish_reason", models.CharField(blank=True, default="", max_length=20)),
                ("prompt_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cached_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("completion_tokens", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "ttft_ms",
                    models.FloatField(
                        blank=True,
                        help_text="From sending to the first token that was not empty.",
                        null=True,
                    ),
                ),
                ("tokens_per_second", models.FloatField(blank=True, null=True)),
                (
                    "kept_from",
                    models.BigIntegerField(
                        blank=True,
                        help_text="First message its prompt held, where the start was cut.",
                        null=True,
                    ),
                ),
                ("finished", models.DateTimeField(blank=True, null=True)),
                (
                    "reasoning_ms",
                    models.FloatField(
                        blank=True,
                        help_text="From the first thought to the first word of the answer.",
                        null=True,
                    ),
                ),
                (
                    "removed",
                    models.DateTimeField(
                        blank=True,
                        help_text="The same for all messages that went together.",
                        null=True,
                    ),
                ),
                (
                    "lost_reason",
                    models.TextField(blank=True, default="", help_text="Why, as half a sentence."),
                ),
                (
                    "lost_tokens",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Of its prompt, read again though the server had read them before.",
                    ),
                ),
                (
                    "pinned",
                    models.BooleanField(
                        default=False,
                        help_text="Sent with its exchange also when the beginning is cut.",
                    ),
                ),
                (
                    "prompt_head",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What else its prompt began with: see `prompting.Head`.",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="chat.conversation",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="chat.message",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="active_leaf",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.message",
            ),
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("stored_as", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(help_text="As its owner calls it.", max_length=255)),
                (
                    "kind",
                    models.CharField(
                        choices=[("text", "Text"), ("pdf", "Pdf"), ("image", "Image")],
                        max_length=10,
                    ),
                ),
                ("media_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField(help_text="Bytes.")),
                (
                    "text",
                    models.TextField(
                        blank=True, default="", help_text="What the model reads of it."
                    ),
                ),
                ("tokens", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="chat.message",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Share",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("title", models.CharField(max_length=80)),
                (
                    "messages",
                    models.JSONField(
                        help_text="role, content, reasoning and model of each, in order."
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to="chat.conversation",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Summary",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("running", "Running"), ("ready", "Ready"), ("failed", "Failed")],
                        default="running",
                        max_length=10,
                    ),
                ),
                (
                    "text",
                    models.TextField(blank=True, default="", help_text="Where it failed, why."),
                ),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "upto",
                    models.OneToOneField(
                        help_text="The last message it covers.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="summary",
                        to="chat.message",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="SystemPrompt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=100)),
                ("version", models.PositiveIntegerField(default=1)),
                ("text", models.TextField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Preset",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=100)),
                ("model", models.CharField(blank=True, max_length=300)),
                ("params", models.JSONField(blank=True, default=dict)),
                ("response_format", models.JSONField(blank=True, default=dict)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="llm.server",
                    ),
                ),
                (
                    "system_prompt",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="chat.systemprompt",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.AddField(
            model_name="message",
            name="system_prompt",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.systemprompt",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="system_prompt",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="chat.systemprompt",
            ),
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=40)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="tags",
            field=models.ManyToManyField(blank=True, related_name="conversations", to="chat.tag"),
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "round",
                    models.PositiveSmallIntegerField(help_text="1, 2, ... within its answer."),
                ),
                (
                    "call_id",
                    models.CharField(help_text="As the model server named it.", max_length=200),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "arguments",
                    models.TextField(help_text="As the model wrote them: JSON, if it was right."),
                ),
                ("text_to", models.PositiveIntegerField(default=0)),
                ("reasoning_to", models.PositiveIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting for you"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("refused", "Refused"),
                            ("expired", "Nobody answered"),
                            ("stopped", "Stopped"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                (
                    "result",
                    models.TextField(blank=True, default="", help_text="What the model reads."),
                ),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                (
                    "answer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_calls",
                        to="chat.message",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="systemprompt",
            constraint=models.UniqueConstraint(
                fields=("owner", "name", "version"), name="chat_system_prompt_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="preset",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="chat_preset_name"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("status", "queued")),
                fields=["conversation"],
                name="chat_message_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("removed__isnull", False)),
                fields=["removed"],
                name="chat_message_removed",
            ),
        ),
        migrations.AddConstraint(
            model_name="tag",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="chat_tag_name"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(fields=["owner", "-updated", "-id"], name="chat_conversation_list"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("removed__isnull", False)),
                fields=["removed"],
                name="chat_conversation_removed",
            ),
        ),
    ]
