"""Fills what older rows lack: the key that finds duplicates, and the place of the next row."""

import hashlib
from typing import Any

from django.db import migrations
from django.db.models import Max

BATCH_ROWS = 2_000


def text_key(text: str) -> int:
    key = hashlib.blake2b(text.casefold().strip().encode(), digest_size=8).digest()
    return int.from_bytes(key, "big", signed=True)


def fill(apps: Any, schema_editor: Any) -> None:
    Example = apps.get_model("datasets", "Example")
    batch = []
    for example in Example.objects.filter(text_key=0).only("text").iterator(BATCH_ROWS):
        example.text_key = text_key(example.text)
        batch.append(example)
        if len(batch) == BATCH_ROWS:
            Example.objects.bulk_update(batch, ["text_key"])
            batch = []
    Example.objects.bulk_update(batch, ["text_key"])
    for dataset in apps.get_model("datasets", "Dataset").objects.annotate(
        last=Max("examples__index")
    ):
        dataset.next_index = 0 if dataset.last is None else dataset.last + 1
        dataset.save(update_fields=["next_index"])


class Migration(migrations.Migration):
    dependencies = [("datasets", "0002_rows_and_revisions")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
