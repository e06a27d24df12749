import asyncio
import signal
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from redis.exceptions import RedisError

from apps.batch import pump_heartbeat
from apps.batch.pump_pool import PumpPool
from apps.llm.client import load_sdk

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Command(BaseCommand):
    help = (
        "Run the jobs: send their rows to the model servers until SIGTERM. Run at least one such "
        "process; more of them share the servers."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="Exit with 0 if such a process is alive on this machine, else with 1.",
        )

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        if check:
            sys.exit(0 if _is_alive() else 1)
        load_sdk()  # before the first row needs it
        asyncio.run(_run())


def _is_alive() -> bool:
    try:
        return pump_heartbeat.is_pump_alive(on_this_machine=True)
    except RedisError:
        return False


async def _run() -> None:
    stopping = asyncio.Event()
    pumps = PumpPool(stopping.is_set)

    def stop() -> None:
        stopping.set()
        pumps.wake()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await pumps.run()
