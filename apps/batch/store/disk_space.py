"""Free disk space of the database.

Checked in advance where the database is a file on this machine; elsewhere recognised by its error.
"""

import shutil
import sqlite3
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connection

# Leaves room for the rows in flight and for the reason why no others start.
LEAST_BYTES = 64 * 1024 * 1024
MEGABYTE = 1024 * 1024
FULL = (
    "Waiting: the database disk is full. Finished rows are kept in memory. The job continues "
    "when there is space."
)
_SQLSTATE_DISK_FULL = "53100"


def low_space_reason() -> str:
    """Return why rows wait, as a sentence; "" with enough space or a database elsewhere."""
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
    """True if a statement failed because the disk of the database is full."""
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return getattr(cause, "sqlstate", None) == _SQLSTATE_DISK_FULL
