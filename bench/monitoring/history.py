"""The space that a month of one server takes, and how long its pages of history take.

A database of its own gets what one sample a second of a server with four models comes to after 30
days: the rows of every resolution, each added up from measurements of a second. Printed are the
bytes that this added to the file and the median time of each page; above a limit the exit code is
1.

Run: `.venv/bin/python -m bench.monitoring.history`. Nothing else should run.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import django
from django.core.management import call_command
from django.db import connection
from django.test import Client

if TYPE_CHECKING:
    from apps.monitoring.history.measurement import Measurement
    from apps.servers.models import Server

MODELS = ("", "qwen-7b", "gemma-12b", "embeddings", "decisions")
LIMIT_BYTES, LIMIT_MS = 50_000_000, 500.0
ROUNDS = 7


def half_minutes(seed: int) -> "list[Measurement]":
    """Some measurements of 30 seconds, each the sum of 30 samples."""
    from apps.monitoring.history.measurement import BUCKETS, Measurement

    dice = random.Random(seed)

    def second() -> Measurement:
        prompt, completion = dice.randrange(4_000), dice.randrange(200)
        first = [0] * BUCKETS
        first[dice.randrange(6, 14)] = 1
        return Measurement(
            readings=1,
            seconds=1.0,
            busy=dice.randrange(5),
            waiting=dice.randrange(3),
            slots=4,
            requests=1,
            prompt=prompt,
            cached=prompt // 2,
            reported=prompt,
            completion=completion,
            timed=completion,
            timed_ms=completion * 20,
            first_ms=400,
            first_tokens=first,
            gpu_readings=1,
            gpu_memory=dice.randrange(24_576),
            gpu_busy_readings=1,
            gpu_busy=dice.random(),
            gpu_power=350 * dice.random(),
        )

    return [sum((second() for _ in range(30)), Measurement()) for _ in range(60)]


def fill(server: "Server", now: int) -> int:
    """Write the rows of a month; return their number."""
    from apps.monitoring.history.measurement import Measurement
    from apps.monitoring.history.store import RESOLUTIONS, start_of
    from apps.monitoring.models import Sample

    rows = []
    for seed, model in enumerate(MODELS):
        measured = half_minutes(seed)
        for resolution in RESOLUTIONS:
            parts = resolution.step // 30
            first = start_of(now - resolution.keep, resolution.step) + resolution.step
            for number, start in enumerate(range(first, now, resolution.step)):
                chosen = (measured[(number + part) % 60] for part in range(parts))
                whole = sum(chosen, Measurement())
                values = {name: getattr(whole, name) for name in Measurement.names()}
                rows.append(
                    Sample(server=server, model=model, step=resolution.step, start=start, **values)
                )
    Sample.objects.bulk_create(rows, batch_size=500)
    return len(rows)


def database_bytes() -> int:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(connection.settings_dict["NAME"]).stat().st_size


def page_ms(client: Client, address: str) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = client.get(address)
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, answer.status_code
    return statistics.median(taken)


def main() -> int:
    from django.contrib.auth.models import User

    from apps.servers.models import Server

    call_command("migrate", verbosity=0)
    server = Server.objects.create(name="GPU box", base_url="http://127.0.0.1:9/v1", parallel=4)
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_user("owner", is_staff=True))
    before = database_bytes()
    rows = fill(server, int(time.time()))
    size = database_bytes() - before
    sys.stdout.write(f"{rows:,} rows, {size / 1e6:.2f} MB\n")
    slowest = 0.0
    for span in ("hour", "day", "week", "month"):
        taken = page_ms(client, f"/servers/{server.pk}/history/?span={span}")
        slowest = max(slowest, taken)
        sys.stdout.write(f"{span}: {taken:.0f} ms\n")
    return int(size >= LIMIT_BYTES or slowest >= LIMIT_MS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBENCH_DATA"] = os.environ.get("BENCH_DATA", folder)
        os.environ.pop("DATABASE_URL", None)
        os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
        django.setup()
        sys.exit(main())
