"""The ASGI application of other programs' requests: everything else goes to Django.

Not views: a program's request needs no session, form token or login page, its body is sent on as
it came, and the end of its connection has to free a slot at once, wherever the request stands.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from apps.core import quotas
from apps.core.models import ApiKey, KeyScope
from apps.gateway.errors import GatewayError
from apps.gateway.model_list import model_list
from apps.gateway.program_request import read_request
from apps.gateway.relay import Answer, refuse, relay
from apps.gateway.routes import MODELS, ROUTES, Dialect
from apps.gateway.targets import read_servers, refreshed
from apps.runtime.async_db import in_db
from apps.servers.models import Server

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BEARER = "bearer "
# Larger bodies are parsed in a thread: a megabyte takes some milliseconds.
LARGE_BODY = 256 * 1024

logger = logging.getLogger(__name__)


class Gateway:
    """Wraps an ASGI application; answers `ROUTES` and the list of models itself."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_ours(scope["path"]):
            await self._application(scope, receive, send)
            return
        body = await _read_body(receive)
        if body is None:
            return
        answer = Answer(send)
        work = asyncio.create_task(_answer(scope, body, answer))
        leaving = asyncio.create_task(_has_left(receive))
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if answer.has_ended:  # who has all of it may leave; what it cost is still to be counted
                await asyncio.wait({work})
        finally:
            leaving.cancel()
            work.cancel()
            await asyncio.wait({leaving, work})
        if not work.cancelled():
            work.result()


def _is_ours(path: str) -> bool:
    return path in ROUTES or path.startswith("/v1/")


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body, which is bounded before; None where the program left."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _has_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(scope: Scope, body: bytes, answer: Answer) -> None:
    route = ROUTES.get(scope["path"])
    dialect = route.dialect if route else Dialect.OPENAI
    try:
        await _handle(scope, body, answer)
    except GatewayError as error:
        await refuse(answer, error, dialect)
    except quotas.LimitReached as error:
        too_many = GatewayError(429, "too_many", str(error), retry_after=error.retry_after)
        await refuse(answer, too_many, dialect)
    except Exception:
        logger.exception("%s failed", scope["path"])
        if answer.has_begun:
            raise
        detail = "Something broke on our side. The log of the workbench says what happened."
        await refuse(answer, GatewayError(500, "internal_error", detail), dialect)


async def _handle(scope: Scope, body: bytes, answer: Answer) -> None:
    key, servers = await in_db(_look_up, _token(scope["headers"]))
    if key is None:
        detail = "Send a valid key of the workbench as `Authorization: Bearer wb_...`."
        raise GatewayError(401, "invalid_api_key", detail)
    path, method = scope["path"], scope["method"]
    if path == MODELS and method in {"GET", "HEAD"}:
        await answer.begin(200, [(b"content-type", b"application/json")])
        await answer.end(model_list(await refreshed(servers)))
        return
    if path not in ROUTES:
        known = ", ".join([MODELS, *ROUTES])
        raise GatewayError(404, "unknown_url", f"There is no such address here. There are {known}.")
    if method != "POST":
        raise GatewayError(405, "method_not_allowed", f"{path} takes POST alone.")
    if key.scope == KeyScope.READ:
        detail = f"The API key “{key.name}” is read only. Create a key with full access."
        raise GatewayError(403, "read_only_key", detail)
    read = asyncio.to_thread if len(body) > LARGE_BODY else _at_once
    with quotas.hold(key.user_id, "programs"):
        request = await read(read_request, path, scope["headers"], body, key.lane)
        await relay(request, key, servers, answer)


def _look_up(token: str) -> tuple[ApiKey | None, list[Server]]:
    """Return the key and the servers, in one go: each question to a thread costs a millisecond."""
    key = ApiKey.find(token)
    return key, read_servers() if key else []


async def _at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _token(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the key of a request, as OpenAI's or as Anthropic's clients send it."""
    token = ""
    for name, value in headers:
        text = value.decode("latin-1")
        if name == b"authorization" and text[: len(BEARER)].lower() == BEARER:
            return text[len(BEARER) :].strip()
        if name == b"x-api-key":
            token = text.strip()
    return token
