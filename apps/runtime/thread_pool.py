"""A small pool of threads for the synchronous part of requests.

Buys: a third of the time of a small request. Under ASGI, Django starts a thread for each request,
and that thread opens a database connection. Here requests share threads that keep theirs (see
`CONN_MAX_AGE` and the pool in the settings); after each call a thread resets what must not be
kept. A request holds a thread only while synchronous code runs, so an open event stream holds
neither a thread nor a connection.

Clients take turns, and each client's calls run in order: a page does not wait behind a hundred
requests of someone else. Above a limit, a client's requests are refused.

More threads would not be faster, because one at a time runs Python; they would slow everyone down
instead of serving one after the other. A thread is added only where the others are stalled, by a
slow disk or a view that waits for a model server.
"""

import asyncio
import contextvars
import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core import signals
from django.db import close_old_connections, connections, reset_queries

MIN_THREADS = 2
MAX_THREADS = 64
# If no call was started for this long, a thread is added.
STALL_SECONDS = 0.05
# A client has one thread: more would only share the interpreter with those of others. While threads
# are stalled a client may have up to this many, so that others still find one.
MAX_THREADS_PER_CLIENT = 16
# A thread above MIN_THREADS ends after this long without a call.
IDLE_SECONDS = 10.0
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
        pool: "RequestThreadPool | None" = None,
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


class _Call:
    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.future: Future[Any] = Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.function()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class _SerialExecutor(Executor):
    """Runs the calls of one request one at a time, in any free thread."""

    def __init__(self, pool: "RequestThreadPool", client: bytes) -> None:
        self._pool = pool
        self._person = client
        self._waiting: deque[_Call] = deque()
        self._is_running = False
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = _Call(lambda: fn(*args, **kwargs))
        with self._lock:
            if self._is_running:
                self._waiting.append(call)
                return call.future
            self._is_running = True
        self._pool.run(call, self._next, self._person)
        return call.future

    def _next(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_running = False
                return
            call = self._waiting.popleft()
        self._pool.run(call, self._next, self._person)


class RequestThreadPool:
    """MIN_THREADS threads that stay, and more while those are stalled."""

    def __init__(self, min_threads: int = MIN_THREADS, max_threads: int = MAX_THREADS) -> None:
        self._min_threads, self._max_threads = min_threads, max_threads
        # The client who has waited longest is first.
        self._calls: OrderedDict[bytes, deque[tuple[_Call, Callable[[], None]]]] = OrderedDict()
        self._running: Counter[bytes] = Counter()
        self._threads = 0
        self._idle = 0
        self._condition = threading.Condition()
        self._started = 0
        self._per_client = 1
        self._backlog = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def size(self) -> int:
        """The number of threads now."""
        return self._threads

    def waiting(self, client: bytes) -> int:
        """The number of a client's calls that wait for a thread."""
        return len(self._calls.get(client, ()))

    def run(self, call: _Call, done: Callable[[], None], client: bytes = b"") -> None:
        """Run a call in one of the threads, and then `done`."""
        with self._condition:
            self._calls.setdefault(client, deque()).append((call, done))
            ready = sum(
                min(len(calls), max(0, self._per_client - self._running[who]))
                for who, calls in self._calls.items()
            )
            if ready and self._idle >= ready:
                self._condition.notify()
            elif ready and self._threads < self._min_threads:
                self._start()
                return
            # A call that waits may wait for a stalled thread: the watcher adds one.
            is_started = ready and self._idle >= ready and sum(map(len, self._calls.values())) == 1
            if not is_started and not self._backlog.is_set():
                self._start_watcher()

    def _start(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="request", daemon=True).start()

    def _work(self) -> None:
        try:
            while (work := self._wait_for_call()) is not None:
                call, done, client = work
                call.run()
                _reset_connections()
                with self._condition:
                    self._running[client] -= 1
                    if not self._running[client]:
                        del self._running[client]
                done()
                del work, call, done  # nothing of a request outlives it here
        finally:
            connections.close_all()
            with self._condition:
                self._threads -= 1

    def _wait_for_call(self) -> tuple[_Call, Callable[[], None], bytes] | None:
        """Return the next call; None where this thread is no longer needed."""
        with self._condition:
            self._idle += 1
            try:
                while (client := self._next_client()) is None:
                    is_extra = self._threads > self._min_threads
                    was_called = self._condition.wait(IDLE_SECONDS if is_extra else None)
                    if is_extra and not was_called and self._next_client() is None:
                        return None
                self._started += 1
                return *self._pop(client), client
            finally:
                self._idle -= 1

    def _next_client(self) -> bytes | None:
        """Return the client whose turn it is; None where none may have another thread."""
        return next((who for who in self._calls if self._running[who] < self._per_client), None)

    def _pop(self, client: bytes) -> tuple[_Call, Callable[[], None]]:
        calls = self._calls.pop(client)
        if len(calls) > 1:
            self._calls[client] = calls  # behind the others
        self._running[client] += 1
        return calls.popleft()

    def _start_watcher(self) -> None:
        self._backlog.set()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="backlog", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        while self._backlog.wait():
            taken = self._started
            time.sleep(STALL_SECONDS)
            with self._condition:
                if not self._calls:
                    self._per_client = 1
                    self._backlog.clear()
                elif self._started == taken:
                    self._per_client = min(MAX_THREADS_PER_CLIENT, self._per_client + 1)
                    if self._idle:
                        self._condition.notify()
                    elif self._threads < self._max_threads:
                        self._start()


def _reset_connections() -> None:
    reset_queries()
    close_old_connections()
