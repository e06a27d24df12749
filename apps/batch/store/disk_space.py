"""Whether there is room to keep rows: beforehand where the database is a file on this machine,
else when it says that its disk is full."""

import shutil
import sqlite3
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connection

# Rows that are in flight are still kept, and so is the reason for which no others start.
LEAST_BYTES = 64 * 1024 * 1024
MEGABYTE = 1024 * 1024
FULL = (
    "Waiting: the database disk is full. Finished rows are kept in memory. The job continues "
    "when there is space."
)
_SQLSTATE_DISK_FULL = "53100"


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
        f"Waiting: only {free // MEGABYTE:,} MB left on the database disk. The job continues at "
        f"{LEAST_BYTES // MEGABYTE:,} MB."
    )


def is_full(error: DatabaseError | InterfaceError) -> bool:
    """Whether a statement failed because the database's disk is full."""
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return getattr(cause, "sqlstate", None) == _SQLSTATE_DISK_FULL
