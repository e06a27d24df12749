"""The threads that requests share."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings as project
from django.contrib.auth.models import User
from django.db import connection

from apps.runtime.threads import thread_pool
from apps.runtime.threads.thread_pool import RequestThreadPool
from apps.runtime.threads.thread_pool_middleware import ThreadPoolMiddleware, serving_loop
from tests.waiting import until


async def call(application: Any) -> None:
    async def receive() -> Any: ...

    async def send(message: Any) -> None: ...

    await ThreadPoolMiddleware(application, POOL)({"type": "http"}, receive, send)


POOL = RequestThreadPool(min_threads=2)


def app(function: Callable[[], Any], said: list[Any]) -> Any:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        said.append(await sync_to_async(function)())

    return application


async def test_requests_share_threads() -> None:
    said: list[int] = []
    for _ in range(20):
        await call(app(threading.get_ident, said))
    assert len(set(said)) < 10  # two, and others where this machine holds those up
    assert threading.get_ident() not in said


async def test_calls_of_one_request_come_one_after_the_other() -> None:
    release = threading.Event()
    begun: list[int] = []

    def busy(number: int) -> None:
        begun.append(number)
        release.wait()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.gather(*(sync_to_async(busy)(number) for number in range(5)))

    held = asyncio.create_task(call(application))
    await until(lambda: begun)
    await call(app(lambda: None, []))  # of another request, after whatever the first one asked for
    assert begun == [0]
    release.set()
    await held
    assert begun == [0, 1, 2, 3, 4]


async def test_threads_that_are_held_up_are_joined_by_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_pool, "IDLE_SECONDS", 0.1)
    release = threading.Event()
    said: list[Any] = []
    held = [asyncio.create_task(call(app(release.wait, said))) for _ in range(6)]
    try:
        await until(lambda: POOL.size == 6)
        async with asyncio.timeout(150):
            await call(app(lambda: POOL.size, said))  # it is idle, and may end, right after
        assert said == [7]
    finally:
        release.set()
    await asyncio.gather(*held)
    await until(lambda: POOL.size == 2)  # those that stay


async def test_calls_of_one_client_run_in_their_order() -> None:
    said: list[int] = []
    pool = RequestThreadPool(min_threads=1)

    def application(number: int) -> Any:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            await sync_to_async(lambda: said.append(number))()

        return ThreadPoolMiddleware(run, pool)

    async with asyncio.TaskGroup() as group:
        for number in range(30):
            group.create_task(application(number)({"type": "http"}, None, None))
    assert said == list(range(30))


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    await send("refused")


def asks(
    pool: RequestThreadPool, person: str, work: Callable[[], Any], max_waiting: float = 1000
) -> "asyncio.Task[list[Any]]":
    """A request of a person; sooner or later the messages that were sent to them."""
    sent: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await sync_to_async(work)()

    async def send(message: Any) -> None:
        sent.append(message)

    async def served() -> list[Any]:
        headers = [(b"cookie", f"a=b; {project.SESSION_COOKIE_NAME}={person}; c=d".encode())]
        scope = {"type": "http", "path": "/api/", "headers": headers}
        middleware = ThreadPoolMiddleware(application, pool, max_waiting=max_waiting, refuse=refuse)
        await middleware(scope, None, send)
        return sent

    return asyncio.create_task(served())


async def test_people_take_turns() -> None:
    pool = RequestThreadPool(min_threads=1, max_threads=1)
    release = threading.Event()
    said: list[str] = []
    work = [asks(pool, "greedy", release.wait)]
    await until(lambda: pool.size and not pool.waiting(b"greedy"))
    work += [asks(pool, "greedy", lambda: said.append("greedy")) for _ in range(20)]
    await until(lambda: pool.waiting(b"greedy") == 20)
    work += [asks(pool, name, lambda name=name: said.append(name)) for name in ("ann", "ben")]
    await until(lambda: pool.waiting(b"ann") and pool.waiting(b"ben"))
    release.set()
    await asyncio.gather(*work)
    assert {"ann", "ben"} <= set(said[:4])


async def test_one_person_does_not_hold_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "MAX_THREADS_PER_CLIENT", 3)
    monkeypatch.setattr(thread_pool, "STALL_SECONDS", 0.001)
    pool = RequestThreadPool(min_threads=2, max_threads=4)
    release = threading.Event()
    held = [asks(pool, "greedy", release.wait) for _ in range(20)]
    try:
        await until(lambda: pool.size >= 3)
        async with asyncio.timeout(150):
            for _ in range(5):
                await asks(pool, "other", lambda: None)
        assert pool.waiting(b"greedy") == 17
    finally:
        release.set()
    await asyncio.gather(*held)
    assert pool.waiting(b"greedy") == 0


async def test_a_client_with_too_many_waiting_calls_is_refused() -> None:
    pool = RequestThreadPool(min_threads=1, max_threads=1)
    release = threading.Event()
    held = [asks(pool, "greedy", release.wait)]
    await until(lambda: pool.size and not pool.waiting(b"greedy"))
    held += [asks(pool, "greedy", release.wait, max_waiting=2) for _ in range(2)]
    await until(lambda: pool.waiting(b"greedy") == 2)
    assert await asks(pool, "greedy", release.wait, max_waiting=2) == ["refused"]
    other = asks(pool, "other", lambda: None, max_waiting=2)
    release.set()
    assert await other == []
    await asyncio.gather(*held)


async def test_errors_reach_the_request() -> None:
    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await call(app(fails, []))
    said: list[Any] = []
    await call(app(lambda: 1, said))
    assert said == [1]


async def test_a_cancelled_request_gives_its_thread_back() -> None:
    release = threading.Event()
    begun: list[bool] = []

    def held() -> None:
        begun.append(True)
        release.wait()

    tasks = [asyncio.create_task(call(app(held, []))) for _ in range(8)]
    await until(lambda: begun)
    for task in tasks:
        task.cancel()
    release.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    said: list[Any] = []
    async with asyncio.timeout(150):
        await call(app(lambda: 1, said))
    assert said == [1]


async def test_a_view_may_wait_for_async_code_that_needs_a_thread() -> None:
    def view() -> Any:
        async def deep() -> int:
            return await sync_to_async(threading.get_ident)()

        return (threading.get_ident(), async_to_sync(deep)())

    said: list[Any] = []
    async with asyncio.timeout(150):
        await asyncio.gather(*(call(app(view, said)) for _ in range(8)))
    assert len(said) == 8
    assert all(outer == inner for outer, inner in said)


async def test_a_thread_knows_the_loop_that_serves_its_request() -> None:
    said: list[Any] = []
    await call(app(serving_loop, said))
    assert said == [asyncio.get_running_loop()]
    assert serving_loop() is None


@pytest.mark.django_db(transaction=True)
async def test_a_connection_is_kept_and_one_that_failed_is_not() -> None:
    pool = RequestThreadPool(min_threads=1)
    said: list[Any] = []

    def query() -> Any:
        User.objects.count()
        return connection.connection

    def fails() -> None:
        connection.errors_occurred = True

    for function in (query, query, fails, query):
        await ThreadPoolMiddleware(app(function, said), pool)({"type": "http"}, None, None)
    first, second, _, third = said
    assert third is not None
    if connection.vendor == "sqlite":  # PostgreSQL's go back to their pool
        assert first is second

    async def leave(scope: Any, receive: Any, send: Any) -> None:
        await sync_to_async(lambda: connection.close())()

    await ThreadPoolMiddleware(leave, pool)({"type": "http"}, None, None)
