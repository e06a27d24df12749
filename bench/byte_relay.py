"""The least a Django application can do for a token: pass on the bytes.

It stores nothing and knows nobody.

Run as `BACKEND=http://127.0.0.1:PORT/v1 BACKEND_KEY=... uvicorn bench.byte_relay:application`.
"""

import json
import os
from collections.abc import AsyncIterator
from functools import cache

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from openai import AsyncOpenAI  # noqa: TID251 - a peer, not the product


@cache
def backend() -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=os.environ["BACKEND"], api_key=os.environ["BACKEND_KEY"], max_retries=0
    )


async def relayed(question: dict[str, object]) -> AsyncIterator[bytes]:
    send = backend().chat.completions.with_streaming_response
    async with send.create(**question) as response:  # type: ignore[call-overload]
        async for data in response.iter_bytes():
            yield data


async def relay(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        relayed(json.loads(request.body)), content_type="text/event-stream"
    )


settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="bench")
django.setup()
urlpatterns = [path("v1/chat/completions", relay)]
application = get_asgi_application()
