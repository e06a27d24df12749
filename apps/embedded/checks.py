"""Checks before the first process starts: data folder, disk space, Redis."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from apps.embedded.errors import StartError

# The embedding model (45 MB), its original during the conversion (90 MB), logs, and user data.
NEEDED_BYTES = 200_000_000
REDIS_SECONDS = 3


@contextlib.contextmanager
def held_folder(data: Path) -> Iterator[None]:
    """Create the data folder if it is missing, make it private, lock it and check its free space.

    Raises:
        StartError: the folder is not writable, in use by another Workbench, or nearly full.
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
    # The lock ends when the file is closed or the process ends.
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
    """Check that the Redis of REDIS_URL answers.

    Raises:
        StartError: it does not.
    """
    import redis  # here: an embedded Redis needs no client in this process

    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=REDIS_SECONDS)
        with contextlib.closing(client):
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise StartError(f"Redis (REDIS_URL) is not responding: {error}") from error
