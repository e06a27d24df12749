"""What must be true before anything is started; each failure is one sentence."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from apps.embedded.errors import StartError

# The embedding model (45 MB), its original while it is converted (90 MB), logs, and some work.
NEEDED_BYTES = 200_000_000
REDIS_SECONDS = 3


@contextlib.contextmanager
def held_folder(data: Path) -> Iterator[None]:
    """The data folder, made if it is missing, private, with enough space, and ours alone.

    Raises:
        StartError: it cannot be.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)
        descriptor = os.open(data / "workbench.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartError(
            f"The data folder {data} is not writable ({error.strerror})."
            " Choose another with WORKBENCH_DATA."
        ) from error
    # Closing the file, or dying, gives the lock back.
    with os.fdopen(descriptor, "r+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartError(
                f"Workbench is already running with the data folder {data}"
                f" (process {file.read().strip() or 'unknown'})."
                " Stop it, or choose another folder with WORKBENCH_DATA."
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        check_space(data)
        yield


def check_space(data: Path) -> None:
    free = shutil.disk_usage(data).free
    if free < NEEDED_BYTES:
        raise StartError(
            f"Only {free // 1_000_000} MB free for the data folder {data}."
            f" Free up {NEEDED_BYTES // 1_000_000} MB, or choose another folder with"
            " WORKBENCH_DATA."
        )


def check_redis(url: str) -> None:
    """Does the Redis that the person named answer?"""
    import redis  # here, because a Redis of our own needs no client in this process

    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=REDIS_SECONDS)
        with contextlib.closing(client):
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise StartError(f"Redis (REDIS_URL) is not responding: {error}") from error
