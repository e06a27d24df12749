"""The sweep of the embedded server: its tables, and what its search of the best width is worth.

The model server has many slots on this machine's cores. The search finds a number of rows in
parallel; then every number is measured in turn, each for longer, which shows the best and what the
search was worth. Then one whole sweep prints its tables.

Run: `.venv/bin/python -m bench.tuning.sweep [--slots 16] [--seconds 8] [--minutes 2]`, alone.
"""

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.model import write_model
from tests.llama_process import LlamaProcess, free_port

NEAR, TIME_SHARE = 0.97, 1 / 5
CONTEXT = 2048


def verdict(name: str, value: float, bar: float, *, at_most: bool = False) -> bool:
    is_met = value <= bar if at_most else value >= bar
    sign = "<=" if at_most else ">="
    print(f"{name}: {value:.3f} (wanted: {sign} {bar:.3f}) {'met' if is_met else 'MISSED'}")
    return is_met


async def measure(slots: int, seconds: float, minutes: float) -> bool:
    from apps.llm.client import close_clients
    from apps.runtime.async_db import in_db
    from apps.runtime.redis import close_async_redis
    from apps.servers.models import Server
    from apps.tuning.sweep.measuring.sweep import Sweep
    from apps.tuning.sweep.services import Progress, choose_model, sweep_server
    from apps.tuning.sweep.tables import to_markdown

    async def ignore(progress: Progress) -> None:
        pass

    target = await choose_model(await in_db(Server.objects.get))
    sweep = Sweep(target, ignore, None)
    await sweep.take_sample()
    began = time.perf_counter()
    await sweep.find_width()
    took, found = time.perf_counter() - began, sweep.results.best_width
    assert found is not None
    probe, tokens = sweep.job_probe()
    rates, began = {}, time.perf_counter()
    for width in range(1, slots + 1):
        rates[width] = (await probe.measure(width, tokens, seconds)).value
    exhaustive = time.perf_counter() - began
    print("search: " + ", ".join(f"{at}: {rate:.0f}" for at, rate in sweep.results.probed.items()))
    print("every width: " + ", ".join(f"{width}: {rate:.0f}" for width, rate in rates.items()))
    print(f"found {found} in {took:.1f} s; every width took {exhaustive:.1f} s")
    near = verdict("rate at the found width / best", rates[found] / max(rates.values()), NEAR)
    soon = verdict(
        "time of the search / of every width", took / exhaustive, TIME_SHARE, at_most=True
    )
    if minutes:
        print(to_markdown(await sweep_server(target, minutes, ignore)))
    await close_clients()
    await close_async_redis()
    return near and soon


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each width")
    parser.add_argument("--minutes", type=float, default=2.0, help="of the whole sweep; 0: none")
    options = parser.parse_args()
    model = write_model(width=512, layers=8)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "workbench.settings",
            "WORKBENCH_DATA": folder,
            "DATABASE_URL": f"sqlite:///{Path(folder) / 'db.sqlite3'}",
            "REDIS_URL": f"redis://127.0.0.1:{port}/0",
        }
        redis = subprocess.Popen(
            ["redis-server", "--port", str(port), "--save", "", "--loglevel", "warning"]
        )
        try:
            process = LlamaProcess(
                model, parallel=options.slots, context_per_slot=CONTEXT, threads=2
            )
            with process as llama:
                set_up(llama)
                good = asyncio.run(measure(options.slots, options.seconds, options.minutes))
        finally:
            redis.terminate()
            redis.wait()
    raise SystemExit(0 if good else 1)


def set_up(llama: LlamaProcess) -> None:
    """A database with one server."""
    import django
    from django.core.management import call_command

    django.setup()
    from apps.servers.models import Server

    call_command("migrate", verbosity=0)
    server = Server(name="Embedded", base_url=llama.base_url)
    server.set_key(llama.api_key)
    server.save()


if __name__ == "__main__":
    main()
