"""A small pool of threads that keep their database connection, shared fairly by clients.

Clients take turns, and each client's calls run in order: a page does not wait behind a hundred
requests of someone else.

More threads would not be faster, because one at a time runs Python; they would slow everyone down
instead of serving one after the other. A thread is added only where the others are stalled, by a
slow disk or a view that waits for a model server.
"""

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

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


class Call:
    """A function to run in a thread, and the future of its result."""

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


class RequestThreadPool:
    """MIN_THREADS threads that stay, and more while those are stalled."""

    def __init__(self, min_threads: int = MIN_THREADS, max_threads: int = MAX_THREADS) -> None:
        self._min_threads, self._max_threads = min_threads, max_threads
        # The client who has waited longest is first.
        self._calls: OrderedDict[bytes, deque[tuple[Call, Callable[[], None]]]] = OrderedDict()
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

    def run(self, call: Call, done: Callable[[], None], client: bytes = b"") -> None:
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
        except BaseException:
            with self._condition:
                self._threads -= 1
            raise
        finally:
            connections.close_all()

    def _wait_for_call(self) -> tuple[Call, Callable[[], None], bytes] | None:
        """Return the next call; None where this thread is no longer needed, and is not counted."""
        with self._condition:
            self._idle += 1
            try:
                while (client := self._next_client()) is None:
                    is_extra = self._threads > self._min_threads
                    was_called = self._condition.wait(IDLE_SECONDS if is_extra else None)
                    # Asked again: others that waited as long may have ended meanwhile.
                    if was_called or self._threads <= self._min_threads:
                        continue
                    if self._next_client() is None:
                        self._threads -= 1
                        return None
                self._started += 1
                return *self._pop(client), client
            finally:
                self._idle -= 1

    def _next_client(self) -> bytes | None:
        """Return the client whose turn it is; None where none may have another thread."""
        return next((who for who in self._calls if self._running[who] < self._per_client), None)

    def _pop(self, client: bytes) -> tuple[Call, Callable[[], None]]:
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
