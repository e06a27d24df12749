"""What takes too long for a request: loading a model."""

import asyncio

from celery import shared_task

from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.loading.load_model import Action, carry_out
from apps.servers.models import Server


@shared_task(name="apps.servers.tasks.act_on_model")
def act_on_model(server_id: int, model: str, action: str) -> None:
    """Loads, unloads or warms a model. Doing it twice does no harm."""
    asyncio.run(_act(server_id, model, Action(action)))


async def _act(server_id: int, model: str, action: Action) -> None:
    try:
        server = await in_db(Server.objects.filter(pk=server_id).first)
        if server is not None:
            await carry_out(server, model, action)
    finally:
        await close_clients()
        await close_async_redis()
