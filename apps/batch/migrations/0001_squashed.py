import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import apps.batch.fields


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
                        help_text="Empty: the first one the server names at the start.",
                        max_length=300,
                    ),
                ),
                ("handler", models.CharField(max_length=50)),
                (
                    "spec",
                    apps.batch.fields.OrderedJSONField(
                        help_text="What the rows share: the handler knows its shape."
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
                        blank=True, help_text="Why it waits, rests or failed, as a sentence."
                    ),
                ),
                (
                    "weight",
                    models.PositiveSmallIntegerField(
                        default=1, help_text="Its share beside other jobs."
                    ),
                ),
                ("total", models.PositiveIntegerField(default=0, help_text="Rows made so far.")),
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
                        blank=True, help_text="Most tokens a day, read anew or written.", null=True
                    ),
                ),
                (
                    "day",
                    models.DateField(
                        blank=True, help_text="The day the budget was last begun.", null=True
                    ),
                ),
                (
                    "day_began_at",
                    models.BigIntegerField(default=0, help_text="Tokens before that day."),
                ),
                (
                    "goal",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Accepted rows wanted: what is rejected or fails is replaced until then.",
                        null=True,
                    ),
                ),
                (
                    "made_before",
                    models.PositiveIntegerField(
                        default=0, help_text="Rows there were when a person last let it go on."
                    ),
                ),
                (
                    "resumes_on",
                    models.DateField(
                        blank=True,
                        help_text="When it goes on by itself after its budget was used up.",
                        null=True,
                    ),
                ),
                (
                    "tries",
                    models.PositiveSmallIntegerField(
                        default=5,
                        help_text="With a goal: at most so many rows are made for each one wanted.",
                    ),
                ),
                (
                    "watched_since",
                    models.DateTimeField(
                        blank=True, help_text="From when on the yield is judged.", null=True
                    ),
                ),
                (
                    "width",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Most rows in flight at once; empty: every slot.",
                        null=True,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="What the Servers page calls it.",
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
                ("points", models.JSONField(default=list, help_text="See `history.Point`.")),
                (
                    "trial",
                    models.JSONField(
                        blank=True,
                        help_text="How fast each width was, see `trials.Trial.result`.",
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
                        blank=True, help_text="The kind of reason, for counts.", max_length=30
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why it was rejected, failed or put back."
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "token",
                    models.BigIntegerField(default=0, help_text="The lease under which it runs."),
                ),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                ("input", apps.batch.fields.OrderedJSONField(blank=True, null=True)),
                ("output", apps.batch.fields.OrderedJSONField(blank=True, null=True)),
                (
                    "prompt",
                    models.TextField(
                        blank=True, help_text="What of the prompt was this row's own."
                    ),
                ),
                (
                    "raw",
                    models.TextField(blank=True, help_text="What the model wrote, to the letter."),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        blank=True,
                        help_text="Two accepted rows never share one.",
                        max_length=32,
                        null=True,
                    ),
                ),
                ("prompt_tokens", models.PositiveIntegerField(default=0)),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("completion_tokens", models.PositiveIntegerField(default=0)),
                (
                    "edited",
                    apps.batch.fields.OrderedJSONField(
                        blank=True,
                        help_text="What a person made of the output, which stays as it was.",
                        null=True,
                    ),
                ),
                (
                    "replaced",
                    models.BooleanField(
                        default=False, help_text="Another row was made in its place."
                    ),
                ),
                (
                    "reviewed",
                    models.BooleanField(default=False, help_text="A person has looked at it."),
                ),
                (
                    "sketch",
                    models.BinaryField(
                        blank=True,
                        help_text="By which its feature knows it again without reading it.",
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
                        help_text="The process, see `holders`.",
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
