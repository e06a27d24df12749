"""Keys of texts as all rooms define them: NFKC, without case, white space collapsed."""

from django.db import migrations, models
from django.db.models import Count

from apps.similarity.text_key import text_key

READ_ROWS = 2_000


def update_text_keys(apps, schema_editor):
    examples = apps.get_model("datasets", "Example")
    stored = examples.objects.order_by("pk").values_list("pk", "dataset", "text", "text_key")
    datasets = set()
    last = 0
    while some := list(stored.filter(pk__gt=last)[:READ_ROWS]):
        last = some[-1][0]
        changed = []
        for pk, dataset, text, old in some:
            if (key := text_key(text)) != old:
                changed.append(examples(pk=pk, text_key=key))
                datasets.add(dataset)
        examples.objects.bulk_update(changed, ["text_key"], batch_size=400)
    for dataset in apps.get_model("datasets", "Dataset").objects.filter(pk__in=datasets):
        found = examples.objects.filter(dataset=dataset).aggregate(
            rows=Count("pk"), texts=Count("text_key", distinct=True)
        )
        dataset.duplicates = found["rows"] - found["texts"]
        dataset.report = {}  # made again when it is next shown
        dataset.save(update_fields=["duplicates", "report"])


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0006_field_names"),
    ]

    operations = [
        migrations.AlterField(
            model_name="dataset",
            name="duplicates",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Rows with the text of an earlier row: see `similarity.text_key`.",
            ),
        ),
        migrations.AlterField(
            model_name="example",
            name="text_key",
            field=models.BigIntegerField(
                default=0,
                help_text="64 bits of the normalised text: see `similarity.text_key`.",
            ),
        ),
        migrations.RunPython(update_text_keys, migrations.RunPython.noop),
    ]
