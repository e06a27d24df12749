import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import apps.core.fields


class Migration(migrations.Migration):
    replaces = [
        ("batch", "0001_initial"),
        ("batch", "0002_goals_and_reviews"),
        ("batch", "0003_batch_name"),
        ("batch", "0004_pumplease_holder"),
        ("batch", "0005_item_sketch"),
        ("batch", "0006_course"),
    ]

    initial = True

    dependencies = [
        ("llm", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Batch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        help_text="Empty: the first model the server lists at the start.",
                        max_length=300,
                    ),
                ),
                ("handler", models.CharField(max_length=50)),
                (
                    "spec",
                    apps.core.fields.OrderedJSONField(
                        help_text="Data that all rows share. The handler defines its shape."
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why it waits, is paused or failed, as a sentence."
                    ),
                ),
                (
                    "weight",
                    models.PositiveSmallIntegerField(
                        default=1, help_text="Priority relative to other jobs."
                    ),
                ),
                ("total", models.PositiveIntegerField(default=0, help_text="Rows created so far.")),
                ("started", models.DateTimeField(blank=True, null=True)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                (
                    "worked_s",
                    models.FloatField(
                        default=0.0, help_text="Seconds in which rows were in flight."
                    ),
                ),
                ("prompt_tokens", models.BigIntegerField(default=0)),
                ("cached_tokens", models.BigIntegerField(default=0)),
                ("completion_tokens", models.BigIntegerField(default=0)),
                (
                    "daily_tokens",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="Max tokens per day, uncached prompt plus output.",
                        null=True,
                    ),
                ),
                (
                    "day",
                    models.DateField(
                        blank=True, help_text="Day of `tokens_before_day`.", null=True
                    ),
                ),
                (
                    "day_began_at",
                    models.BigIntegerField(default=0, help_text="Tokens spent before that day."),
                ),
                (
                    "goal",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Accepted rows wanted; rejected and failed rows are replaced until then.",
                        null=True,
                    ),
                ),
                (
                    "made_before",
                    models.PositiveIntegerField(
                        default=0, help_text="Rows that existed when someone last resumed it."
                    ),
                ),
                (
                    "resumes_on",
                    models.DateField(
                        blank=True,
                        help_text="Day on which it resumes after the daily limit.",
                        null=True,
                    ),
                ),
                (
                    "tries",
                    models.PositiveSmallIntegerField(
                        default=5,
                        help_text="With a goal: max rows created per row wanted.",
                    ),
                ),
                (
                    "watched_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="Start of the rows that count towards the yield.",
                        null=True,
                    ),
                ),
                (
                    "width",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Max rows in parallel; empty: all slots.",
                        null=True,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Name on the Servers page.",
                        max_length=200,
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
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="llm.server",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Course",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("points", models.JSONField(default=list, help_text="See `throughput.Point`.")),
                (
                    "trial",
                    models.JSONField(
                        blank=True,
                        help_text="Tokens/s by rows in parallel, see `ProbeResult`.",
                        null=True,
                    ),
                ),
                ("tried", models.DateTimeField(blank=True, null=True)),
                (
                    "batch",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="course",
                        to="batch.batch",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("accepted", "Accepted"),
                            ("rejected", "Rejected"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                (
                    "code",
                    models.CharField(
                        blank=True, help_text="Machine-readable reason, for counts.", max_length=30
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why it was rejected, failed or returned to pending."
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "token",
                    models.BigIntegerField(
                        default=0, help_text="Token of the lease under which it runs."
                    ),
                ),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                ("input", apps.core.fields.OrderedJSONField(blank=True, null=True)),
                ("output", apps.core.fields.OrderedJSONField(blank=True, null=True)),
                (
                    "prompt",
                    models.TextField(
                        blank=True, help_text="The part of the prompt that only this row has."
                    ),
                ),
                (
                    "raw",
                    models.TextField(blank=True, help_text="Exact output of the model."),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        blank=True,
                        help_text="Unique among the accepted rows of a batch.",
                        max_length=32,
                        null=True,
                    ),
                ),
                ("prompt_tokens", models.PositiveIntegerField(default=0)),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("completion_tokens", models.PositiveIntegerField(default=0)),
                (
                    "edited",
                    apps.core.fields.OrderedJSONField(
                        blank=True,
                        help_text="Edited output; `output` stays unchanged.",
                        null=True,
                    ),
                ),
                (
                    "replaced",
                    models.BooleanField(default=False, help_text="A replacement row was created."),
                ),
                (
                    "reviewed",
                    models.BooleanField(default=False, help_text="Reviewed by a person."),
                ),
                (
                    "sketch",
                    models.BinaryField(
                        blank=True,
                        help_text="Signature for near-duplicate search.",
                        null=True,
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="batch.batch",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PumpLease",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.BigIntegerField(default=0)),
                ("until", models.DateTimeField()),
                ("heartbeat", models.DateTimeField()),
                (
                    "holder",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Process, see `process_identity`.",
                        max_length=200,
                    ),
                ),
                (
                    "server",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pump_lease",
                        to="llm.server",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(fields=["server", "status"], name="batch_batch_server__5b1f2e_idx"),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(fields=["batch", "status", "code", "index"], name="item_state"),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(fields=["batch", "fingerprint"], name="item_fingerprint"),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(fields=["batch", "finished"], name="item_finished"),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("replaced", False), ("status__in", ("rejected", "failed"))),
                fields=["batch"],
                name="item_to_replace",
            ),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(
                fields=("batch", "index"), name="one_item_per_index"
            ),
        ),
    ]
