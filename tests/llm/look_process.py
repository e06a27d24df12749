"""``python -m tests.llm.look_process PK AT``: looks at a server when the clock says AT."""

import asyncio
import sys
import time

import django


async def look(pk: int) -> None:
    from apps.core.redis import close_async_redis
    from apps.llm.client import close_clients
    from apps.llm.looking import look_at
    from apps.llm.models import Server

    server = await look_at(await Server.objects.aget(pk=pk))
    assert server.state == "ready"
    await close_clients()
    await close_async_redis()


if __name__ == "__main__":
    django.setup()
    time.sleep(max(0.0, float(sys.argv[2]) - time.time()))
    asyncio.run(look(int(sys.argv[1])))
