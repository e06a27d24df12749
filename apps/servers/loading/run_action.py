"""Runs an action on a model as a worker: its progress is written, its cancelling is heard."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

from apps.llm import errors
from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.loading.load_model import Action, run_action
from apps.servers.loading.progress import progress_of
from apps.servers.models import Server
from apps.servers.probing.refresh import refresh_server
from apps.work.models import TaskState
from apps.work.services import MAX_ATTEMPTS, HeldTask

CHECK_SECONDS = 1.0
WORN_OUT = f"The worker ended {MAX_ATTEMPTS} times during this. See the worker log."


def run_model_action(held: HeldTask) -> None:
    """Run an action on a model: the handler of `MODEL_ACTION`. Doing it twice does no harm."""
    asyncio.run(_run(held))


async def _run(held: HeldTask) -> None:
    options = held.task.options
    model, action = options["model"], Action(options["action"])
    try:
        server = await in_db(Server.objects.filter(pk=options["server"]).first)
        if server is None:
            return
        if held.is_worn_out:
            raise errors.LoadFailed(WORN_OUT)
        server = await refresh_server(server)
        report = _report(held, server, model, action)
        await _first_of(run_action(server, model, action), _watch(held), report)
    except errors.LLMError as error:
        await in_db(held.end, TaskState.FAILED, str(error))
    finally:
        await close_clients()
        await close_async_redis()


async def _watch(held: HeldTask) -> None:
    """Return never; raise once the task is cancelled or lost."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        await in_db(held.check)


async def _report(held: HeldTask, server: Server, model: str, action: Action) -> None:
    """Write the progress that the server reports, each percent once. Return never."""
    percent = -1
    async with aclosing(progress_of(server, model, action)) as shares:
        async for share in shares:
            if round(share * 100) > percent:
                percent = round(share * 100)
                await in_db(held.report, percent, 100)
    await asyncio.Event().wait()


async def _first_of(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run coroutines at once until the first ends; raise its error, cancel the others."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
