"""The synchronous part of requests, run in a small pool of threads.

Buys: a third of the time of a small request. Under ASGI, Django starts a thread for each request,
and that thread opens a database connection. Here requests share threads that keep theirs (see
`CONN_MAX_AGE` and the pool in the settings); after each call a thread resets what must not be
kept. A request holds a thread only while synchronous code runs, so an open event stream holds
neither a thread nor a connection. Above a limit, a client's requests are refused.
"""

import asyncio
import contextvars
import math
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core import signals
from django.db import close_old_connections, reset_queries

from apps.runtime.threads.thread_pool import Call, RequestThreadPool

SESSION = f"{settings.SESSION_COOKIE_NAME}=".encode()

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("serving_loop")


def disconnect_connection_signals() -> None:
    """Stop Django from closing old connections at both ends of each request, in this process.

    Each call of the pool does that itself, in its own thread. Django would switch to a thread once
    more at the beginning of every request.
    """
    signals.request_started.disconnect(reset_queries)
    signals.request_started.disconnect(close_old_connections)
    signals.request_finished.disconnect(close_old_connections)


def serving_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that serves the current request, from the thread that handles it."""
    return _loop.get(None)


class ThreadPoolMiddleware:
    """Wraps an ASGI application: its synchronous parts run in the threads of a pool."""

    def __init__(
        self,
        application: Application,
        pool: RequestThreadPool | None = None,
        *,
        max_waiting: float = math.inf,
        refuse: Application | None = None,
    ) -> None:
        """
        Args:
            max_waiting: calls of one client that may wait for a thread.
            refuse: answers a request of a client with too many.
        """
        self._application = application
        self._pool = pool or RequestThreadPool()
        self._max_waiting, self._refuse = max_waiting, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        client = client_identity(scope)
        if self._refuse and self._pool.waiting(client) >= self._max_waiting:
            await self._refuse(scope, receive, send)
            return
        async with ThreadSensitiveContext(executor=_SerialExecutor(self._pool, client)):
            token = _loop.set(asyncio.get_running_loop())
            try:
                await self._application(scope, receive, send)
            finally:
                _loop.reset(token)


def client_identity(scope: Scope) -> bytes:
    """Return what clients take turns by: a key, a login, else an address. Looks nothing up."""
    found = b""
    for name, value in scope.get("headers", ()):
        if name == b"authorization":
            return bytes(value)
        if name == b"cookie":
            found = value.partition(SESSION)[2].partition(b";")[0]
    client = scope.get("client")
    return found or (client[0].encode() if client else b"")


class _SerialExecutor(Executor):
    """Runs the calls of one request one at a time, in any free thread."""

    def __init__(self, pool: RequestThreadPool, client: bytes) -> None:
        self._pool = pool
        self._client = client
        self._waiting: deque[Call] = deque()
        self._is_running = False
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = Call(lambda: fn(*args, **kwargs))
        with self._lock:
            if self._is_running:
                self._waiting.append(call)
                return call.future
            self._is_running = True
        self._pool.run(call, self._next, self._client)
        return call.future

    def _next(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_running = False
                return
            call = self._waiting.popleft()
        self._pool.run(call, self._next, self._client)
