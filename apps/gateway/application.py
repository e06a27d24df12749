"""The ASGI application of other programs' requests: everything else goes to Django.

Not views: a program's request needs no session, form token or login page, its body is sent on as
it came, and the end of its connection has to free a slot at once, wherever the request stands.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from redis.exceptions import RedisError

from apps.core.label_models.registry import list_models
from apps.core.models import ApiKey, KeyScope
from apps.gateway.answer import Answer, refuse
from apps.gateway.errors import GatewayError
from apps.gateway.limits.admission import admitted
from apps.gateway.limits.answers import bounded
from apps.gateway.model_list import model_entry, model_list
from apps.gateway.own_models.answer import answer_with_label
from apps.gateway.pools.look_ups import look_up
from apps.gateway.program_request import read_request
from apps.gateway.relay import relay
from apps.gateway.routes import MODELS, ROUTES, Dialect
from apps.gateway.targets import refreshed
from apps.gateway.usage import counters
from apps.gateway.usage.record import RequestRecord
from apps.runtime.async_db import in_db
from apps.servers.models import Server

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BEARER = "bearer "
# Larger bodies are parsed in a thread: a megabyte takes some milliseconds.
LARGE_BODY = 256 * 1024
DJANGO_PATHS = ("/v1/files", "/v1/batches")

logger = logging.getLogger(__name__)


class Gateway:
    """Wraps an ASGI application; answers `ROUTES` and the list of models itself.

    Files and batches are objects of the database: their routes are Django's.
    """

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
            await _count(answer.record)
        if not work.cancelled():
            work.result()


async def _count(record: RequestRecord) -> None:
    if record.key is None:
        return
    try:
        await counters.count(record, record.key)
    except RedisError as error:
        logger.warning("A request is not in the usage, Redis does not answer: %s", error)


def _is_ours(path: str) -> bool:
    if path.startswith(DJANGO_PATHS):
        return False
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
    except RedisError:
        detail = "The workbench's Redis does not answer. Try again in a moment."
        await refuse(answer, GatewayError(503, "no_redis", detail, retry_after=2), dialect)
    except Exception:
        logger.exception("%s failed", scope["path"])
        answer.record.has_failed = True
        if answer.has_begun:
            raise
        detail = "Something went wrong. Details are in the log of Workbench."
        await refuse(answer, GatewayError(500, "internal_error", detail), dialect)


async def _handle(scope: Scope, body: bytes, answer: Answer) -> None:
    key, servers = await look_up(_token(scope["headers"]))
    if key is None:
        detail = "Send a valid key of the workbench as `Authorization: Bearer wb_...`."
        raise GatewayError(401, "invalid_api_key", detail)
    path, method = scope["path"], scope["method"]
    if (path + "/").startswith(f"{MODELS}/") and method in {"GET", "HEAD"}:
        await _send_models(path.removeprefix(MODELS)[1:], key, servers, answer)
        return
    if path not in ROUTES:
        known = ", ".join([MODELS, *ROUTES])
        raise GatewayError(404, "unknown_url", f"There is no such address here. There are {known}.")
    if method != "POST":
        raise GatewayError(405, "method_not_allowed", f"{path} takes POST alone.")
    if key.scope == KeyScope.READ:
        detail = f"The API key “{key.name}” is read only. Create a key with full access."
        raise GatewayError(403, "read_only_key", detail)
    answer.record.key, answer.record.needs_slot = key, ROUTES[path].needs_slot
    read = asyncio.to_thread if len(body) > LARGE_BODY else _at_once
    async with admitted(key, lambda: answer.record.charge(len(body))):
        request = await read(read_request, path, scope["headers"], body, key.lane)
        request = bounded(request, key)
        if not await answer_with_label(request, key, servers, answer):
            await relay(request, key, servers, answer)


async def _send_models(name: str, key: ApiKey, servers: list[Server], answer: Answer) -> None:
    """Send the list of models, or what is known of one."""
    own, fresh = await in_db(list_models, key.user_id), await refreshed(servers)
    said = model_entry(name, fresh, own, key) if name else model_list(fresh, own, key)
    await answer.begin(200, [(b"content-type", b"application/json")])
    await answer.end(said)


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
