import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("datasets", "0001_initial"),
        ("datasets", "0002_rows_and_revisions"),
        ("datasets", "0003_text_keys"),
        ("datasets", "0004_queue_turns"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Dataset",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=200)),
                (
                    "origin",
                    models.CharField(
                        help_text="Where it came from: a file name, a job, an example.",
                        max_length=300,
                    ),
                ),
                ("rows", models.PositiveIntegerField(default=0)),
                ("label_counts", models.JSONField(default=dict)),
                ("split_counts", models.JSONField(default=dict)),
                ("rejected_count", models.PositiveIntegerField(default=0)),
                (
                    "duplicates",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Rows whose text was there before, but for case and outer spaces.",
                    ),
                ),
                (
                    "notes",
                    models.JSONField(
                        default=list, help_text="What was cleaned or found, in sentences."
                    ),
                ),
                (
                    "extra_columns",
                    models.JSONField(default=list, help_text="The names of what `meta` holds."),
                ),
                (
                    "near",
                    models.JSONField(
                        default=dict,
                        help_text="The search for near copies: state, done, total, model, version.",
                    ),
                ),
                (
                    "next_index",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="The place of the next row that is added. Places are not used twice.",
                    ),
                ),
                (
                    "report",
                    models.JSONField(
                        default=dict, help_text="What `reports` found, and at which version."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("importing", "Importing"),
                            ("ready", "Ready"),
                            ("deleting", "Deleting"),
                        ],
                        db_index=True,
                        default="ready",
                        max_length=10,
                    ),
                ),
                ("unlabelled", models.PositiveIntegerField(default=0)),
                (
                    "version",
                    models.PositiveIntegerField(
                        default=0, help_text="The number of its last revision; 0 as it came in."
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
            name="Queue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "left_out",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Rows that were asked for and are test rows, or not there.",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queues",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Rejection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "row",
                    models.PositiveIntegerField(
                        help_text="Its number in the source; the header is row 1."
                    ),
                ),
                ("column", models.CharField(blank=True, max_length=200)),
                ("reason", models.CharField(max_length=300)),
                (
                    "file",
                    models.CharField(
                        blank=True, default="", help_text="Of several files.", max_length=200
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rejections",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "what",
                    models.CharField(help_text='A sentence: "Row 7: a became b."', max_length=300),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "rows",
                    models.PositiveIntegerField(default=0, help_text="How many rows it changed."),
                ),
                ("undone", models.BooleanField(default=False)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="datasets.dataset",
                    ),
                ),
                (
                    "undoes",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="datasets.revision",
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                (
                    "before",
                    models.JSONField(
                        help_text="The fields that changed; null: no such row.", null=True
                    ),
                ),
                ("after", models.JSONField(null=True)),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="datasets.revision",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "file_name",
                    models.CharField(
                        help_text="What the sender called it; shown only.", max_length=200
                    ),
                ),
                ("size", models.PositiveBigIntegerField()),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("cancelled", models.BooleanField(default=False)),
                ("done_rows", models.PositiveIntegerField(default=0)),
                ("done_share", models.FloatField(default=0, help_text="Of the bytes, 0 to 1.")),
                ("error", models.TextField(blank=True)),
                ("lease", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "parts",
                    models.JSONField(
                        default=list,
                        help_text='Of several files: [{"name", "size", "split"}]. Empty: one file.',
                    ),
                ),
                ("plan", models.JSONField(default=dict, help_text="How it is to be imported.")),
                ("started", models.DateTimeField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting for its columns to be confirmed"),
                            ("queued", "Queued"),
                            ("importing", "Importing"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                (
                    "woken",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When a worker was last told."
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
            ],
            options={
                "ordering": ["-created"],
            },
        ),
        migrations.CreateModel(
            name="Example",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "index",
                    models.PositiveIntegerField(help_text="Its place in the dataset, from 0."),
                ),
                ("text", models.TextField()),
                (
                    "label",
                    models.CharField(
                        blank=True, help_text="Empty while nobody gave one.", max_length=200
                    ),
                ),
                (
                    "split",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not given"),
                            ("train", "Train"),
                            ("validation", "Validation"),
                            ("test", "Test"),
                        ],
                        default="",
                        max_length=10,
                    ),
                ),
                ("origin", models.CharField(blank=True, default="", max_length=60)),
                (
                    "meta",
                    models.JSONField(
                        blank=True, default=dict, help_text="The cells of extra columns."
                    ),
                ),
                (
                    "text_key",
                    models.BigIntegerField(
                        default=0,
                        help_text="64 bits of the text but for case and outer spaces: finds duplicates.",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="examples",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "ordering": ["index"],
                "indexes": [
                    models.Index(fields=["dataset", "label", "index"], name="example_label"),
                    models.Index(fields=["dataset", "split", "index"], name="example_split"),
                    models.Index(
                        fields=["dataset", "text_key", "split", "label"], name="example_text"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dataset", "index"), name="example_place")
                ],
            },
        ),
        migrations.CreateModel(
            name="NearCopy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "index",
                    models.PositiveIntegerField(help_text="The test row, where one of the two is."),
                ),
                ("other_index", models.PositiveIntegerField()),
                ("cosine", models.FloatField()),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="near_copies",
                        to="datasets.dataset",
                    ),
                ),
            ],
            options={
                "ordering": ["-cosine", "pk"],
                "indexes": [models.Index(fields=["dataset", "index"], name="near_row")],
            },
        ),
        migrations.CreateModel(
            name="QueueItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", models.PositiveIntegerField()),
                ("index", models.PositiveIntegerField(help_text="The row's place in the dataset.")),
                ("reason", models.CharField(blank=True, max_length=300)),
                (
                    "suggested",
                    models.JSONField(default=list, help_text="Labels, the likeliest first."),
                ),
                ("seen", models.BooleanField(default=False)),
                (
                    "revision",
                    models.PositiveIntegerField(
                        help_text="The number of the revision that gave it a label; null: kept, skipped.",
                        null=True,
                    ),
                ),
                (
                    "turn",
                    models.PositiveIntegerField(
                        help_text="Its number among those looked at, in order: Undo goes back by it.",
                        null=True,
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="datasets.queue",
                    ),
                ),
            ],
            options={
                "ordering": ["place"],
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "place"), name="queue_place")
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="revision",
            constraint=models.UniqueConstraint(
                fields=("dataset", "number"), name="revision_number"
            ),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(fields=["revision", "index"], name="change_row"),
        ),
    ]
