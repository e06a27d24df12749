import sys
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import CommandError, CommandParser

from apps.core.management.piped_command import PipedCommand
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.findings import finding_lines
from apps.tuning.doctor.services import examine_server

FOUND = 1
"""The exit code where something was found, or a server could not be examined."""


class Command(PipedCommand):
    help = (
        "Find faults of the model servers, with evidence, cost and the flags that mend them. "
        "Prints nothing and returns 0 where all is well, else returns 1."
    )
    requires_system_checks = []  # they import every page, which takes seconds

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server", nargs="?", help="its name under Servers (default: all)")
        parser.add_argument(
            "--read-only",
            action="store_true",
            help="send no request to a model, only read what the server reports",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        servers = list(Server.objects.all())
        if options["server"]:
            servers = [server for server in servers if server.name == options["server"]]
            if not servers:
                raise CommandError(f"There is no server “{options['server']}” under Servers.")
        found = async_to_sync(_examine)(servers, asks=not options["read_only"])
        for examination in found:
            self._print(examination)
        if any(one.findings or not one.is_examined for one in found):
            sys.exit(FOUND)

    def _print(self, examination: Examination) -> None:
        title = f"{examination.server}, {examination.model}".removesuffix(", ")
        for note in examination.notes:
            self.stderr.write(f"{title}: {note}")
        if examination.findings:
            self.stdout.write(f"{title}: {len(examination.findings)} found\n")
        for finding in examination.findings:
            self.stdout.write("\n".join(finding_lines(finding)))


async def _examine(servers: list[Server], *, asks: bool) -> list[Examination]:
    try:
        return [one for server in servers for one in await examine_server(server, asks=asks)]
    finally:
        await close_clients()
        await close_async_redis()
