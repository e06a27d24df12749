"""What `up` does to the database before and while the web server starts."""

from collections.abc import Callable, Mapping

from django.conf import settings
from django.core.management import call_command
from django.db import Error as DatabaseError
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from apps.embedded.errors import StartError

POSTGRES_SECONDS = 5
SERVER_SETTINGS = ("LLM_BASE_URL", "LLM_API_KEY", "EMBED_BASE_URL", "EMBED_API_KEY")


def migrate_if_needed(report: Callable[[str], None]) -> None:
    """Bring the tables up to date; on most starts looking is all there is to do.

    Raises:
        StartError: the database cannot be opened or changed.
    """
    _check_postgres()
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            report("Preparing the database.")
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        raise _unusable(error) from error
    finally:
        connections.close_all()  # this process goes on for days


def _check_postgres() -> None:
    """Ask once, outside the pool: that would ask for 20 seconds and log each time."""
    if connection.vendor != "postgresql":
        return
    import psycopg  # here, because a start with SQLite has no use for it

    parameters = {**connection.get_connection_params(), "connect_timeout": POSTGRES_SECONDS}
    try:
        psycopg.connect(**parameters).close()
    except psycopg.Error as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> StartError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return StartError(f"The database (DATABASE_URL) cannot be used: {lines[0]}")


def register(servers: Mapping[str, str]) -> str:
    """Write the model servers into the database and return the path of a login link."""
    # Here, because these imports take as long as the rest of the start; by now the web server
    # is starting too, and nobody waits.
    from apps.core.login_links import create_login_link
    from apps.llm.services import configure_servers

    # This process read its settings before it chose where its servers listen.
    for name in SERVER_SETTINGS:
        setattr(settings, name, servers.get(name, ""))
    try:
        configure_servers()
        return create_login_link()
    except DatabaseError as error:
        raise StartError(f"The model servers could not be written down: {error}") from error
    finally:
        connections.close_all()
