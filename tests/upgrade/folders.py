"""Restores a data folder of an earlier version, on SQLite or PostgreSQL."""

import gzip
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.environment import REDIS_SOCKET

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir())
POSTGRES = os.environ.get("WORKBENCH_TEST_DATABASE_URL", "")

Row = dict[str, Any]


class Folder:
    """A data folder, and how programs of Workbench are run on it."""

    def __init__(self, path: Path, database: str = "") -> None:
        self.path = path
        self.env = os.environ | {
            "WORKBENCH_DATA": str(path),
            "REDIS_URL": f"unix://{REDIS_SOCKET}?db=0",
            "WORKBENCH_SECRET_KEY": "upgrade",  # with it the keys in the folders are encrypted
            "DJANGO_SETTINGS_MODULE": "workbench.settings",
        }
        self.env.pop("DATABASE_URL", None)
        if database:
            self.env["DATABASE_URL"] = database

    def run(self, *arguments: str) -> str:
        """Return what a Python program prints on this folder.

        Raises:
            AssertionError: It failed; the message is what it wrote.
        """
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def restored(version: str, path: Path) -> Iterator[Folder]:
    """The folder of a version, as it was left; `version` "" is a new and empty one."""
    if version:
        with tarfile.open(DATA / version / "files.tar.gz") as files:
            # Some Pythons 3.11 have no `extractall(filter=)`.
            files.extraction_filter = getattr(tarfile, "data_filter", None)
            files.extractall(path)
    if not POSTGRES:
        if version:
            packed = (DATA / version / "workbench.sqlite3.gz").read_bytes()
            (path / "workbench.sqlite3").write_bytes(gzip.decompress(packed))
        yield Folder(path)
        return
    name = f"upgrade_{os.getpid()}_{version or 'new'}"
    database = urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))
    with psycopg.connect(_existing_database(), autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            if version:
                script = gzip.decompress((DATA / version / "postgres.sql.gz").read_bytes())
                with psycopg.connect(database, autocommit=True) as connection:
                    connection.execute(script)
            yield Folder(path, database)
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _existing_database() -> str:
    """Every PostgreSQL server has this one; the tests' own may not be made yet."""
    return urlunsplit(urlsplit(POSTGRES)._replace(path="/postgres"))
