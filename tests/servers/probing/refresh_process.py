"""`python -m ...refresh_process PK`: says "ready", then refreshes a server once told to."""

import asyncio
import sys

import django


async def probe(pk: int) -> None:
    server = await refresh_server(await Server.objects.aget(pk=pk))
    assert server.state == "ready"
    await close_clients()
    await close_async_redis()


if __name__ == "__main__":
    django.setup()
    from apps.llm.client import close_clients
    from apps.runtime.redis import close_async_redis
    from apps.servers.models import Server
    from apps.servers.probing.refresh import refresh_server
    from tests.waiting import be_patient

    be_patient()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    asyncio.run(probe(int(sys.argv[1])))
