"""OpenAI's SDK as it is, through the gateway to Django."""

from typing import Any

import httpx2
import openai  # noqa: TID251 - a program that asks us
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User

from apps.core.http.body_limit import BodyLimitMiddleware
from apps.core.models import ApiKey, KeyScope
from apps.gateway.application import Gateway
from apps.runtime.handler import Handler


async def sdk_of(person: User, scope: KeyScope = KeyScope.FULL) -> openai.AsyncOpenAI:
    """Return a client with a new key of a person."""
    _, token = await sync_to_async(ApiKey.issue)(user=person, name="laptop", scope=scope)
    application: Any = BodyLimitMiddleware(Gateway(Handler()), settings.UPLOAD_LIMIT_BYTES)
    http_client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=application))
    return openai.AsyncOpenAI(
        base_url="http://localhost/v1", api_key=token, http_client=http_client, max_retries=0
    )
