"""Imports a large file as a worker does, in a process of its own, and says what it cost.

    python bench/datasets/import_rows.py [rows] [csv|jsonl|parquet|xlsx] [--limit-mb 400]

Made-up rows of about 60 characters in a throw-away database. Fails above the limit.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("kind", nargs="?", default="csv")
    parser.add_argument("--limit-mb", type=int, default=400)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{arguments.kind}"
        # In a process of its own: the peak of a parent is counted as its child's.
        subprocess.run(
            [sys.executable, __file__, "--write", str(path), str(arguments.rows)], check=True
        )
        env = os.environ | {
            "WORKBENCH_DATA": folder,
            "DJANGO_SETTINGS_MODULE": "workbench.settings",
            "PYTHONPATH": str(ROOT),
        }
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=env, check=True
        )
        done = subprocess.run(
            [sys.executable, __file__, "--child", str(path)],
            cwd=ROOT,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        )
    measured = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{measured['rows']:,} rows of {arguments.kind} in {measured['seconds']:.1f} s "
        f"({measured['rows'] / measured['seconds']:,.0f} a second), "
        f"{measured['peak_mb']:.0f} MB at most ({measured['base_mb']:.0f} before the first row)"
    )
    return 0 if measured["peak_mb"] < arguments.limit_mb else 1


def write(path: Path, count: int, kind: str) -> None:
    rows = (
        (f"Row {n} asks where the parcel is that was sent on day {n % 365}", f"label {n % 77}")
        for n in range(count)
    )
    if kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows(rows)
    elif kind == "jsonl":
        with path.open("w") as file:
            file.writelines(json.dumps({"text": t, "label": label}) + "\n" for t, label in rows)
    elif kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"text": texts, "label": labels}), path)
    else:
        import openpyxl

        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        sheet.append(["text", "label"])
        for row in rows:
            sheet.append(row)
        book.save(path)


def child(path: Path) -> None:
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.files import File

    from apps import files
    from apps.datasets import services
    from apps.datasets.imports import import_queue
    from apps.datasets.models import Dataset, Upload
    from apps.work import services as work

    owner = User.objects.create_user("bench")
    with path.open("rb") as file:
        upload = services.store_upload(owner=owner, files=[File(file, name=path.name)])
    import_queue.enqueue_import(
        upload, services.ImportOptions("bench", files.ColumnMapping("text", "label")), send=False
    )
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begun = time.perf_counter()
    assert upload.task is not None
    work.run(upload.task.pk)
    seconds = time.perf_counter() - begun
    upload = Upload.objects.get()
    assert upload.state == "done", upload.error
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = Dataset.objects.get().rows
    print(json.dumps({"rows": rows, "seconds": seconds, "peak_mb": peak, "base_mb": base}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[2]).suffix[1:])
    elif sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]))
    else:
        sys.exit(main())
