"""Migrations and the configured model servers, written before and while the web server starts.

Django is imported inside the functions: the import takes as long as all other steps together, and
on most starts the web server does not have to wait for it.
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
    """Return True if a SQLite database lists all migrations of our apps; False for other databases.

    A quick check that saves time. `migrate_if_needed` checks again while the web server starts.
    """
    if database["ENGINE"] != "django.db.backends.sqlite3":
        return False
    expected = {
        (file.parent.parent.name, file.stem)
        for file in root.glob("apps/*/migrations/*.py")
        if file.stem != "__init__"
    }
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{database['NAME']}?mode=ro", uri=True)
        ) as db:
            return expected <= set(db.execute("SELECT app, name FROM django_migrations"))
    except sqlite3.Error:
        return False


def migrate_if_needed(say: Say) -> None:
    """Run the migrations that are missing; on most starts there are none.

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
        raise _connection_error(error) from error
    finally:
        connections.close_all()  # this process runs for days


def _check_postgres(parameters: Mapping[str, Any]) -> None:
    """Connect once without the pool, which would retry for 20 seconds and log each failure."""
    import psycopg  # here: SQLite does not need it

    try:
        psycopg.connect(**{**parameters, "connect_timeout": POSTGRES_SECONDS}).close()
    except psycopg.Error as error:
        raise _connection_error(error) from error


def _connection_error(error: Exception) -> StartError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return StartError(f"Cannot connect to the database (DATABASE_URL): {lines[0]}")


def register(servers: Mapping[str, str], say: Say) -> str:
    """Save the configured model servers; return the path of the login link."""
    migrate_if_needed(say)
    from django.conf import settings
    from django.db import Error, connections

    from apps.core.accounts.login_links import startup_path
    from apps.servers.services import configure_servers
    from workbench import env

    # The settings were read before the ports of the embedded servers were chosen.
    for name in SERVER_SETTINGS:
        setattr(settings, name, servers.get(name, ""))
    if unified := servers.get("LLM_KV_UNIFIED"):
        settings.LLM_KV_UNIFIED = unified.lower() in env.TRUE
    try:
        configure_servers()
        return startup_path()
    except Error as error:
        raise _connection_error(error) from error
    finally:
        connections.close_all()
