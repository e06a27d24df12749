"""The threads in which the synchronous part of requests runs.

Under ASGI Django starts a thread for every request, and that thread opens a database connection:
a third of what a small request costs. Here requests share a few threads that stay, each with the
connection it has (see `CONN_MAX_AGE` and the pool in the settings); after every call it hands back
what must not be kept. A request holds a thread only while it runs in it, so an open stream of
events holds neither thread nor connection.

Who waits takes turns with others who do, and their own calls come in their order: a page is not
behind a hundred requests of somebody else. Who has too many waiting is told so.

More threads would not be faster, since one at a time runs Python, but they make everybody slow
instead of one after the other fast. Only where the threads are held up, by a slow disk or a view
that waits for a model server, is another one started.
"""

import asyncio
import contextvars
import json
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

from apps.core import quotas
from apps.core.quotas import LimitReached

FEW = 2
# So long nobody's turn comes before one more thread is started, up to MANY.
HELD_UP_SECONDS = 0.05
MANY = 64
# One person, or program, has one at a time: their calls would only share the interpreter with those
# of others. While threads are held up it may be more, up to this: others still find one.
MOST_OF_ONE = 16
# A thread beyond FEW ends when it had nothing to do for so long.
SPARE_SECONDS = 10.0
SESSION = f"{settings.SESSION_COOKIE_NAME}=".encode()

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("serving_loop")


def hand_back_ourselves() -> None:
    """For the whole process: Django is not to look after connections at the ends of a request.

    Each of our calls does that itself, in the thread it ran in. Django would go to a thread once
    more at the beginning of every request for it.
    """
    signals.request_started.disconnect(reset_queries)
    signals.request_started.disconnect(close_old_connections)
    signals.request_finished.disconnect(close_old_connections)


def serving_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that serves the request in hand, seen from the thread that works on it."""
    return _loop.get(None)


class InWarmThreads:
    """Wraps an ASGI application: its synchronous parts run in the threads of `pool`."""

    def __init__(self, application: Application, pool: "WarmThreads | None" = None) -> None:
        self._application = application
        self._pool = pool or WarmThreads()

    async def _refuse(self, scope: Scope, send: Send) -> None:
        error = LimitReached("requests", quotas.most("requests"))
        said = {"code": "too_many", "detail": str(error), "errors": []}
        is_route = scope["path"].startswith("/api/")
        headers = [
            (b"content-type", b"application/json" if is_route else b"text/plain; charset=utf-8"),
            (b"retry-after", str(error.retry_after).encode()),
            (b"connection", b"close"),
        ]
        body = json.dumps(said) if is_route else str(error)
        await send({"type": "http.response.start", "status": 429, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        person = who_of(scope)
        if self._pool.waiting(person) >= quotas.most("requests"):
            await self._refuse(scope, send)
            return
        async with ThreadSensitiveContext(executor=_Turns(self._pool, person)):
            token = _loop.set(asyncio.get_running_loop())
            try:
                await self._application(scope, receive, send)
            finally:
                _loop.reset(token)


def who_of(scope: Scope) -> bytes:
    """Who takes turns with others: a key, a login, else an address. Nothing is looked up."""
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


class _Turns(Executor):
    """The calls of one request: one at a time, in whichever thread is free."""

    def __init__(self, pool: "WarmThreads", person: bytes) -> None:
        self._pool = pool
        self._person = person
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


class WarmThreads:
    """A few threads that stay, and more while those are held up."""

    def __init__(self, few: int = FEW, many: int = MANY) -> None:
        self._few, self._many = few, many
        # Who has waited longest for a turn is first.
        self._calls: OrderedDict[bytes, deque[tuple[_Call, Callable[[], None]]]] = OrderedDict()
        self._running: Counter[bytes] = Counter()
        self._threads = 0
        self._idle = 0
        self._condition = threading.Condition()
        self._taken = 0
        self._of_one = 1
        self._backlog = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def size(self) -> int:
        """How many threads there are now."""
        return self._threads

    def waiting(self, person: bytes) -> int:
        """How many calls of one person wait for a thread."""
        return len(self._calls.get(person, ()))

    def run(self, call: _Call, done: Callable[[], None], person: bytes = b"") -> None:
        """Runs a call in one of the threads, and then `done`."""
        with self._condition:
            self._calls.setdefault(person, deque()).append((call, done))
            ready = sum(
                min(len(calls), max(0, self._of_one - self._running[who]))
                for who, calls in self._calls.items()
            )
            if ready and self._idle >= ready:
                self._condition.notify()
            elif ready and self._threads < self._few:
                self._start()
                return
            # Who is not taken now waits for a turn: it is seen to that it comes.
            is_taken = ready and self._idle >= ready and sum(map(len, self._calls.values())) == 1
            if not is_taken and not self._backlog.is_set():
                self._watch_the_backlog()

    def _start(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="request", daemon=True).start()

    def _work(self) -> None:
        try:
            while (work := self._take()) is not None:
                call, done, person = work
                call.run()
                _hand_back()
                with self._condition:
                    self._running[person] -= 1
                    if not self._running[person]:
                        del self._running[person]
                done()
                del work, call, done  # nothing of a request outlives it here
        finally:
            connections.close_all()
            with self._condition:
                self._threads -= 1

    def _take(self) -> tuple[_Call, Callable[[], None], bytes] | None:
        """What is to be done next; None where this thread is no longer needed."""
        with self._condition:
            self._idle += 1
            try:
                while (person := self._next_person()) is None:
                    is_spare = self._threads > self._few
                    was_called = self._condition.wait(SPARE_SECONDS if is_spare else None)
                    if is_spare and not was_called and self._next_person() is None:
                        return None
                self._taken += 1
                return *self._turn(person), person
            finally:
                self._idle -= 1

    def _next_person(self) -> bytes | None:
        """Whose turn it is; None where nobody waits who may have one more thread."""
        return next((who for who in self._calls if self._running[who] < self._of_one), None)

    def _turn(self, person: bytes) -> tuple[_Call, Callable[[], None]]:
        calls = self._calls.pop(person)
        if len(calls) > 1:
            self._calls[person] = calls  # behind the others
        self._running[person] += 1
        return calls.popleft()

    def _watch_the_backlog(self) -> None:
        self._backlog.set()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="backlog", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        while self._backlog.wait():
            taken = self._taken
            time.sleep(HELD_UP_SECONDS)
            with self._condition:
                if not self._calls:
                    self._of_one = 1
                    self._backlog.clear()
                elif self._taken == taken:
                    self._of_one = min(MOST_OF_ONE, self._of_one + 1)
                    if self._idle:
                        self._condition.notify()
                    elif self._threads < self._many:
                        self._start()


def _hand_back() -> None:
    reset_queries()
    close_old_connections()
