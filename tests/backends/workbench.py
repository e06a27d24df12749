"""The workbench as a program sees it: its HTTP API, and a pump beside it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient

from apps.batch.pump_pool import PumpPool
from apps.classifiers.models import Run
from apps.work import services as work
from apps.work.models import Task, TaskState
from tests.backends.backend import Backend
from tests.chat.conftest import Event, program_of, read_events
from tests.classifiers import factories
from tests.waiting import until

OPEN = {"queued", "running"}
SCHEMA = {
    "type": "object",
    "required": ["text", "label"],
    "properties": {
        "text": {"type": "string", "maxLength": 40},
        "label": {"type": "string", "enum": ["positive", "negative"]},
    },
}
RECIPE = {
    "system": "You write realistic synthetic data.",
    "prompt": "Write a {{ sentiment }} review.",
    "attributes": {"sentiment": ["positive", "negative"]},
    "schema": SCHEMA,
    "params": {"max_tokens": 200},
}


@dataclass
class Answer:
    """A finished answer, and the events that a reader of it saw."""

    events: list[Event]
    conversation: int
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]

    @property
    def error(self) -> str:
        return (self.body["error"] or {"code": ""})["code"]

    @property
    def sentence(self) -> str:
        return (self.body["error"] or {"detail": ""})["detail"]


class Workbench:
    """What alice, who may add servers, does with one of them."""

    def __init__(self, client: AsyncClient, alice: User) -> None:
        self._client = client
        self._alice = alice
        self.server = 0

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the decoded answer, which has to be a good one."""
        more = {} if body is None else {"data": body, "content_type": "application/json"}
        answer = await getattr(self._client, method)(f"/api/v1{path}", **more)
        assert answer.status_code < 300, answer.content
        return answer.json() if answer.content else None

    # --- Servers ---------------------------------------------------------------

    async def add(self, backend: Backend, *, url: str = "", key: str | None = None) -> Any:
        """Add a server, with what a person states of it; returns what is known of it."""
        body = {
            "name": f"Backend {url or 'itself'}"[:100],
            "base_url": url or backend.base_url,
            "api_key": backend.api_key if key is None else key,
            **backend.stated,
        }
        known = await self.call("post", "/servers", body)
        self.server = known["id"]
        return known

    async def look(self) -> Any:
        """Have it looked at now."""
        return await self.call("post", f"/servers/{self.server}/probe")

    async def model(self, name: str) -> Any:
        models = (await self.look())["models"]
        return next(model for model in models if model["id"] == name)

    async def work_actions(self) -> None:
        """Do the loads and unloads that were asked for, as a worker would."""
        waiting = Task.objects.filter(state=TaskState.QUEUED).values_list("pk", flat=True)
        for task in [pk async for pk in waiting]:
            await asyncio.to_thread(_work_on, task)

    # --- Chat ------------------------------------------------------------------

    async def start(
        self, model: str, text: str = "Hello", *, conversation: int = 0, max_tokens: int = 16
    ) -> tuple[int, int]:
        """Ask, and return the conversation and the answer that has begun."""
        if not conversation:
            body = {"server": self.server, "model": model}
            conversation = (await self.call("post", "/conversations", body))["id"]
        question = {"content": text, "params": {"max_tokens": max_tokens}}
        begun = await self.call("post", f"/conversations/{conversation}/messages", question)
        return conversation, begun["answer"]["id"]

    async def events(self, answer: int) -> AsyncGenerator[Event, None]:
        """All events from the first on, also those that came before this call."""
        response = await self._client.get(f"/api/v1/answers/{answer}/events?after=0")
        assert response.status_code == 200, response.content
        return read_events(response)

    async def until_token(self, answer: int) -> None:
        """Wait until a reader sees the first token."""
        async with aclosing(await self.events(answer)) as events:
            async for event in events:
                if event.name == "token":
                    return
        raise AssertionError("it ended without a token")

    async def finished(self, conversation: int, answer: int) -> Answer:
        async with asyncio.timeout(120):
            events = [event async for event in await self.events(answer)]
        return Answer(events, conversation, await self.call("get", f"/answers/{answer}"))

    async def ask(
        self, model: str, text: str = "Hello", *, conversation: int = 0, max_tokens: int = 16
    ) -> Answer:
        """Ask, and wait for the answer's end."""
        begun = await self.start(model, text, conversation=conversation, max_tokens=max_tokens)
        return await self.finished(*begun)

    # --- Jobs ------------------------------------------------------------------

    async def job(self, model: str, rows: int, **recipe: Any) -> int:
        body = {
            "name": "Reviews",
            "rows": rows,
            "seed": 7,
            "server": self.server,
            "model": model,
            "recipe": RECIPE | recipe,
        }
        return int((await self.call("post", "/jobs", body))["id"])

    async def job_state(self, job: int) -> Any:
        return await self.call("get", f"/jobs/{job}")

    async def until_job(self, job: int, what: Any, *, within: float = 120) -> Any:
        """Wait until `what` is true of a job, and return it."""
        seen: list[Any] = []

        async def is_so() -> bool:
            seen[:] = [await self.job_state(job)]
            return bool(what(seen[0]))

        try:
            await until(is_so, within=within, what="the job's state")
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen[0]}") from error
        return seen[0]

    async def until_done(self, job: int, *, within: float = 120) -> Any:
        return await self.until_job(job, lambda job: job["status"] not in OPEN, within=within)

    async def rows(self, job: int) -> list[Any]:
        return list((await self.call("get", f"/jobs/{job}/rows?limit=500"))["items"])

    @asynccontextmanager
    async def pumping(self) -> AsyncIterator[None]:
        """Rows are worked on while the block lasts."""
        stop = asyncio.Event()
        pumps = PumpPool(stop.is_set)
        task = asyncio.create_task(pumps.run())
        try:
            yield
        finally:
            stop.set()
            pumps.wake()
            async with asyncio.timeout(150):
                await task

    # --- Classifiers -----------------------------------------------------------

    async def train(self, model: str) -> Any:
        """Train a classifier on a few rows, and return it."""
        dataset = await sync_to_async(factories.dataset)(self._alice)
        body = {"name": "Topics", "dataset": dataset.pk, "server": self.server, "model": model}
        made = await self.call("post", "/classifiers", body)
        run = await Run.objects.aget(pk=made["run"]["id"])
        assert run.task_id is not None
        await asyncio.to_thread(_work_on, run.task_id)
        return await self.call("get", f"/classifiers/{made['id']}")


def _work_on(task: int) -> None:
    """Do a task as a worker would."""
    try:
        work.run(task)
    finally:
        connections.close_all()


def workbench_of(alice: User) -> Workbench:
    return Workbench(program_of(alice), alice)
