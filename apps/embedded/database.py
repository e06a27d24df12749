"""What `up` does to the database before and while the web server starts.

Django is imported inside the functions: it takes as long as all else that `up` does, and on most
starts the web server need not wait for it.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.embedded.errors import StartError

POSTGRES_SECONDS = 5
SERVER_SETTINGS = ("LLM_BASE_URL", "LLM_API_KEY", "EMBED_BASE_URL", "EMBED_API_KEY")

Say = Callable[[str], None]


def looks_current(root: Path, database: Mapping[str, Any]) -> bool:
    """Have all our migrations been run? A quick look at SQLite; of others nothing is known.

    `migrate_if_needed` looks properly, later and beside the web server.
    """
    if database["ENGINE"] != "django.db.backends.sqlite3":
        return False
    ours = {
        (file.parent.parent.name, file.stem)
        for file in root.glob("apps/*/migrations/*.py")
        if file.stem != "__init__"
    }
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{database['NAME']}?mode=ro", uri=True)
        ) as db:
            return ours <= set(db.execute("SELECT app, name FROM django_migrations"))
    except sqlite3.Error:
        return False


def migrate_if_needed(say: Say) -> None:
    """Bring the tables up to date; on most starts looking is all there is to do.

    Raises:
        StartError: the database cannot be opened or changed.
    """
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import Error, connection, connections
    from django.db.migrations.executor import MigrationExecutor

    if connection.vendor == "postgresql":
        _check_postgres(connection.get_connection_params())
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            say("Preparing the database…")
            call_command("migrate", verbosity=0, interactive=False)
    except Error as error:
        raise _unusable(error) from error
    finally:
        connections.close_all()  # this process goes on for days


def _check_postgres(parameters: Mapping[str, Any]) -> None:
    """Ask once, outside the pool: that would ask for 20 seconds and log each time."""
    import psycopg  # here, because a start with SQLite has no use for it

    try:
        psycopg.connect(**{**parameters, "connect_timeout": POSTGRES_SECONDS}).close()
    except psycopg.Error as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> StartError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return StartError(f"Cannot connect to the database (DATABASE_URL): {lines[0]}")


def register(servers: Mapping[str, str], say: Say) -> str:
    """Write the model servers into the database; the path that a person is to open."""
    migrate_if_needed(say)
    from django.conf import settings
    from django.db import Error, connections

    from apps.core.accounts.login_links import startup_path
    from apps.servers.services import configure_servers
    from workbench import env

    # This process read its settings before it chose where its servers listen.
    for name in SERVER_SETTINGS:
        setattr(settings, name, servers.get(name, ""))
    if unified := servers.get("LLM_KV_UNIFIED"):
        settings.LLM_KV_UNIFIED = unified.lower() in env.TRUE
    try:
        configure_servers()
        return startup_path()
    except Error as error:
        raise _unusable(error) from error
    finally:
        connections.close_all()
