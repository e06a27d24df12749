"""Background tasks: actions on models, which take too long for a request."""

import asyncio

from celery import shared_task

from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.loading.activities import run_started_action
from apps.servers.loading.load_model import Action
from apps.servers.models import Server


@shared_task(name="apps.servers.tasks.act_on_model")
def act_on_model(server_id: int, model: str, action: str) -> None:
    """Load, unload or warm a model. Running it twice does no harm."""
    asyncio.run(_act(server_id, model, Action(action)))


async def _act(server_id: int, model: str, action: Action) -> None:
    try:
        server = await in_db(Server.objects.filter(pk=server_id).first)
        if server is not None:
            await run_started_action(server, model, action)
    finally:
        await close_clients()
        await close_async_redis()
