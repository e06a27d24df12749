from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import CommandError, CommandParser

from apps.core.management.piped_command import PipedCommand
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from apps.tuning.errors import SweepError
from apps.tuning.models import SweepRun
from apps.tuning.runs.services import store_results
from apps.tuning.sweep.results import SweepResults
from apps.tuning.sweep.services import (
    DEFAULT_MINUTES,
    MOST_MINUTES,
    Progress,
    choose_model,
    sweep_server,
)
from apps.tuning.sweep.tables import describe, make_tables, table_text, to_markdown


class Command(PipedCommand):
    help = (
        "Measure a model server: prompt and generation rates and the time to the first token by "
        "the number of sequences at the same time, and the best number of rows in parallel."
    )
    requires_system_checks = []  # they import every page, which takes seconds

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server", help="its name under Servers")
        parser.add_argument("--model", default="", help="one of its models (default: the first)")
        parser.add_argument(
            "--minutes",
            type=float,
            default=DEFAULT_MINUTES,
            help=f"the most time it takes (default: {DEFAULT_MINUTES}, max {MOST_MINUTES})",
        )
        parser.add_argument("--markdown", action="store_true", help="print Markdown")

    def handle(self, *args: Any, **options: Any) -> None:
        server = Server.objects.filter(name=options["server"]).first()
        if server is None:
            raise CommandError(f"There is no server “{options['server']}” under Servers.")
        if not 0 < options["minutes"] <= MOST_MINUTES:
            raise CommandError(f"--minutes: more than 0, at most {MOST_MINUTES}.")
        try:
            results = async_to_sync(self._sweep)(server, options["model"], options["minutes"])
        except SweepError as error:
            raise CommandError(str(error)) from None
        server.refresh_from_db()
        run = SweepRun(server=server, model=options["model"], minutes=options["minutes"])
        run.save()
        store_results(run, results)
        if options["markdown"]:
            self.stdout.write(to_markdown(results))
            return
        self.stdout.write("\n".join(describe(results)))
        for table in make_tables(results):
            self.stdout.write(f"\n{table_text(table)}")

    async def _sweep(self, server: Server, model: str, minutes: float) -> SweepResults:
        try:
            target = await choose_model(server, model)
            return await sweep_server(target, minutes, self._report)
        finally:
            await close_clients()
            await close_async_redis()

    async def _report(self, progress: Progress) -> None:
        place = f"{progress.done + 1} of {progress.planned}: " if progress.planned else ""
        self.stderr.write(f"{place}{progress.doing}")
