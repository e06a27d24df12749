"""What `up` does to the database before and while the web server starts."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from django.core.management import call_command
from django.db import Error as DatabaseError
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from apps.embedded.errors import StartError


def migrate_if_needed(report: Callable[[str], None]) -> None:
    """Bring the tables up to date; looking takes a fifth of what `migrate` takes.

    Raises:
        StartError: the database cannot be opened or changed.
    """
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            report("Preparing the database.")
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise StartError(f"The database (DATABASE_URL) cannot be used: {lines[-1]}") from error
    finally:
        connections.close_all()  # this process goes on for days


async def register(root: Path, env: Mapping[str, str]) -> str:
    """Write the model servers into the database and return the path of a login link.

    In a process of its own: it must see the addresses that `up` has only just chosen, and it
    imports every app, which the supervisor need not hold in memory for days.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, root / "manage.py", "up_register"),
        env=env,
        cwd=root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        last = (errors.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
        raise StartError(f"The model servers could not be written into the database: {last}")
    return output.decode().strip().splitlines()[-1]
