import django.db.models.deletion
from django.db import migrations, models

RUNNING_ROWS = (
    'UPDATE "batch_item" SET "server_id" = (SELECT "server_id" FROM "batch_batch" '
    'WHERE "batch_batch"."id" = "batch_item"."batch_id") WHERE "status" = \'running\''
)


class Migration(migrations.Migration):
    dependencies = [
        ("batch", "0008_field_names"),
        ("llm", "0002_field_names"),
    ]

    operations = [
        migrations.CreateModel(
            name="BatchServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True, help_text="The batch's model there.", max_length=300
                    ),
                ),
                (
                    "is_fallback",
                    models.BooleanField(
                        default=False, help_text="Works only while the batch's own server is away."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("working", "Working"),
                            ("waiting", "Waiting"),
                            ("away", "Away"),
                            ("left_out", "Left out"),
                        ],
                        default="working",
                        max_length=10,
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, help_text="Why it does not work, as a sentence."),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddField(
            model_name="batch",
            name="active_until",
            field=models.FloatField(
                default=0.0,
                help_text="End of `active_seconds`, Unix time: servers work at the same time.",
            ),
        ),
        migrations.AddField(
            model_name="batch",
            name="all_servers",
            field=models.BooleanField(
                default=False, help_text="Every server with the same model works on it."
            ),
        ),
        migrations.AddField(
            model_name="batch",
            name="may_fall_back",
            field=models.BooleanField(
                default=False,
                help_text="The fallback for generation works on it while its server is away.",
            ),
        ),
        migrations.AddField(
            model_name="item",
            name="server",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="Whose pump claimed it; of a finished row, the server that did it.",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="llm.server",
            ),
        ),
        migrations.RunSQL(RUNNING_ROWS, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="item",
            name="token",
            field=models.BigIntegerField(
                default=0, help_text="Token of the lease under which it was claimed."
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("finished__isnull", True), ("server__isnull", False)),
                fields=["server"],
                name="item_claimed",
            ),
        ),
        migrations.AddField(
            model_name="batchserver",
            name="batch",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="servers",
                to="batch.batch",
            ),
        ),
        migrations.AddField(
            model_name="batchserver",
            name="server",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="llm.server"
            ),
        ),
        migrations.AddConstraint(
            model_name="batchserver",
            constraint=models.UniqueConstraint(
                fields=("batch", "server"), name="one_entry_per_server"
            ),
        ),
    ]
