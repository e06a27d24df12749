"""A database with all tables, made once: migrating an empty one takes a start 5 s of CPU."""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import django

NAME = "workbench.sqlite3"


def migrated_database(root: Path, cache: Path, env: Mapping[str, str]) -> Path:
    """Return a SQLite file that the migrations of this version have made, and nothing else."""
    cache.mkdir(parents=True, exist_ok=True)
    made = cache / f"migrated-{_digest(root)}.sqlite3"
    with (cache / "migrated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes ask at once
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                _migrate(root, Path(folder), env)
                (Path(folder) / NAME).replace(made)
    return made


def _digest(root: Path) -> str:
    """Name the migrations: those of Django and every file of ours."""
    found = hashlib.sha256(django.get_version().encode())
    for path in sorted(root.glob("apps/*/migrations/*.py")):
        found.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _migrate(root: Path, folder: Path, env: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=root,
        env={**env, "WORKBENCH_DATA": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (folder / f"{NAME}-wal").exists(), "the database is not in one file"
    (folder / NAME).chmod(0o600)
