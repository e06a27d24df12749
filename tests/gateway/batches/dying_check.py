"""A worker that reads a batch and is killed while it stores a piece: `python -m ... TASK PIECE`."""

import os
import signal
import sys

import django

django.setup()

from apps.batch.models import Batch  # noqa: E402 - Django first
from apps.batch.services import append_rows  # noqa: E402
from apps.core.schemas.json_types import JsonObject  # noqa: E402
from apps.gateway.batches import make_job  # noqa: E402
from apps.work import services as work  # noqa: E402

left = int(sys.argv[2])


def append_or_die(job: Batch, piece: list[JsonObject]) -> None:
    """Store pieces, but of the last one half, in a transaction that never ends."""
    global left
    left -= 1
    append_rows(job, piece if left else piece[: len(piece) // 2])
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    make_job.append_rows = append_or_die
    work.run(int(sys.argv[1]))
