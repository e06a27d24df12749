import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("classifiers", "0001_initial"),
        ("classifiers", "0002_judging_and_files"),
        ("classifiers", "0003_snapshots"),
    ]

    initial = True

    dependencies = [
        ("batch", "0001_squashed"),
        ("datasets", "0001_squashed"),
        ("llm", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Classifier",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=200)),
                ("model", models.CharField(blank=True, max_length=300)),
                (
                    "options",
                    models.JSONField(
                        default=dict,
                        help_text="seed, balanced, what embeddings.Preparation knows, and the chosen gates.",
                    ),
                ),
                (
                    "pinned",
                    models.BooleanField(
                        default=False,
                        help_text="A person chose the run that answers: a newer one waits.",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="datasets.dataset",
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
                (
                    "test_dataset",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "number",
                    models.PositiveIntegerField(help_text="1, 2, ... within its classifier."),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("embedding", "Embedding"),
                            ("fitting", "Fitting"),
                            ("evaluating", "Evaluating"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("started", models.DateTimeField(null=True)),
                ("finished", models.DateTimeField(null=True)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("stage_started", models.DateTimeField(null=True)),
                ("cancel_requested", models.BooleanField(default=False)),
                ("lease", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "woken",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When a worker was last told."
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("seed", models.PositiveIntegerField(default=0)),
                ("options", models.JSONField(default=dict)),
                ("data_hash", models.CharField(blank=True, max_length=64)),
                ("train_rows", models.PositiveIntegerField(default=0)),
                ("test_source", models.CharField(blank=True, max_length=300)),
                ("test_indices", models.JSONField(default=list)),
                ("embedding", models.JSONField(default=dict)),
                ("versions", models.JSONField(default=dict)),
                ("metrics", models.JSONField(default=dict)),
                ("per_class", models.JSONField(default=list)),
                ("confusion", models.JSONField(default=list)),
                ("confused", models.JSONField(default=list)),
                ("reliability", models.JSONField(default=list)),
                ("fit", models.JSONField(default=dict)),
                ("notes", models.JSONField(default=list)),
                ("left_out", models.JSONField(default=list)),
                ("seconds", models.JSONField(default=dict)),
                (
                    "curve",
                    models.JSONField(default=list, help_text="Accuracy by how many rows it had."),
                ),
                ("gates", models.JSONField(default=dict, help_text="See `gates.Gates`.")),
                ("leaks", models.JSONField(default=dict, help_text="See `judging.find_leaks`.")),
                (
                    "queue",
                    models.JSONField(
                        default=list, help_text="Rows to look at: see `queueing.Suggestion`."
                    ),
                ),
                (
                    "snapshots",
                    models.JSONField(
                        default=list,
                        help_text="The versions of the datasets it saw: dataset, version, rows, hash.",
                    ),
                ),
                (
                    "classifier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="classifiers.classifier",
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
            },
        ),
        migrations.CreateModel(
            name="FilePrediction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("started", models.DateTimeField(null=True)),
                ("finished", models.DateTimeField(null=True)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("cancel_requested", models.BooleanField(default=False)),
                ("lease", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "woken",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When a worker was last told."
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "file_name",
                    models.CharField(
                        help_text="What the sender called it; shown only.", max_length=200
                    ),
                ),
                ("column", models.CharField(blank=True, max_length=200)),
                ("form", models.CharField(default="csv", max_length=5)),
                (
                    "counts",
                    models.JSONField(default=dict, help_text="Rows by label, gate or reason."),
                ),
                (
                    "classifier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="classifiers.classifier",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="classifiers.run",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.AddField(
            model_name="classifier",
            name="current",
            field=models.ForeignKey(
                blank=True,
                help_text="The run whose classifier answers: the newest that is ready.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="classifiers.run",
            ),
        ),
        migrations.CreateModel(
            name="ChatTest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "shots",
                    models.PositiveSmallIntegerField(help_text="Examples a label in the prompt."),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "batch",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="batch.batch",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chat_tests",
                        to="classifiers.run",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(fields=("classifier", "number"), name="run_number"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("status__in", ["queued", "embedding", "fitting", "evaluating"])
                ),
                fields=("classifier",),
                name="one_active_run",
            ),
        ),
    ]
