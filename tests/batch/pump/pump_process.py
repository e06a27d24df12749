"""A pump in a process of its own, to be killed: `python -m ...pump_process SERVER_ID`."""

import asyncio
import sys

import django

django.setup()

from apps.batch.pump.pump import run_pump  # noqa: E402 - Django first
from tests.batch import conftest as _handlers  # noqa: E402, F401 - registers them

if __name__ == "__main__":
    asyncio.run(run_pump(int(sys.argv[1])))
