"""Whether there is room to keep rows, where the database is a file on this machine."""

import shutil
from pathlib import Path

from django.db import connection

# Rows that are in flight are still kept, and so is the reason for which no others start.
LEAST_BYTES = 64 * 1024 * 1024
MEGABYTE = 1024 * 1024


def too_little_room() -> str:
    """Why rows wait, as a sentence; empty where there is room or the database is elsewhere."""
    if connection.vendor != "sqlite":
        return ""
    folder = Path(connection.settings_dict["NAME"]).parent
    if not folder.is_dir():  # a database in memory
        return ""
    free = shutil.disk_usage(folder).free
    if free >= LEAST_BYTES:
        return ""
    return (
        f"Waiting: the disk that holds the database has {free // MEGABYTE:,} MB left. Rows go on "
        f"when it has {LEAST_BYTES // MEGABYTE:,} MB again."
    )
