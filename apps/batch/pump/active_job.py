"""An active job in the memory of its pump."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from apps.batch.handlers import Handler, JobContext, PostProcess, RunRow
from apps.batch.models import Batch, BatchServer
from apps.batch.store.row_events import PendingRow
from apps.core.schemas.json_types import JsonValue
from apps.llm.client import ChatRequest
from apps.llm.permits import Lane
from apps.llm.resume import ResumableCompletion
from apps.servers.models import Server
from apps.servers.services import choose_target

BUSY_STATES = (BatchServer.State.WORKING, BatchServer.State.WAITING)


@dataclass
class ActiveJob:
    id: int
    name: str
    owner: int
    weight: int
    width: int | None
    """Max rows in flight, set by the owner; None: as many as the server has slots."""
    run_row: RunRow
    context: JobContext[Any]
    rows: int
    """Rows in total."""
    row_tokens: int = 0
    """Max tokens of one request."""
    spec_hash: str = ""
    """Hash of the stored spec that `context` was built from."""
    lane: Lane = Lane.BATCH
    asks_for_slots: bool = False
    """True if its rows do so themselves."""
    loses_work: Callable[[JsonValue], bool] = lambda row: False
    """True of a row's input if the row begins again where its slot is taken."""

    ready: deque[PendingRow] = field(default_factory=deque)
    exhausted: bool = False
    """True if the last read found no further pending row."""
    drafts: dict[int, ResumableCompletion] = field(default_factory=dict)
    """Unfinished answers of rows whose slot was taken, by row key."""
    running: int = 0
    slots_held: int = 0
    """Slots in use; the other rows in flight wait for one."""
    last_held_at: float = field(default_factory=time.monotonic)
    active_since: float = 0.0
    """Start of the time that `active_seconds` does not include yet."""
    consecutive_failures: int = 0
    """Permanent failures since the last success."""
    finished_until: datetime | None = None
    """When the last row was finished that post-processing has seen, of any server."""
    best_width: int | None = None
    """Measured max rows in parallel, if fewer than all slots."""
    mixed_width: int | None = None
    """The same while people use the server; None while nobody does, or if not measured."""
    is_home: bool = True
    """True if this is the job's own server, whose pump keeps the job in order: refill, end."""
    is_shared: bool = False
    """True if several servers work on the job: rows are claimed shortly before they start."""
    wants_all_servers: bool = False
    """True on the job's own server if every server with the same model is to work on it."""
    is_checked: bool = False
    """True if this server was found to have the model of the job's own one."""
    is_fallback: bool = False
    is_standby: bool = False
    """True on a fallback while the job's own server answers."""
    left_out_until: float = 0.0
    """Until then the server does nothing for the job, which it cannot do."""
    wait_until: float = 0.0
    """Until then no row starts."""
    waits_for: str = ""
    """What it waits for until then, as a sentence."""

    shared_request: ChatRequest | None = None
    """Begins as the requests of all rows do; None once its slots were warmed, or if nothing is."""
    is_warming: bool = False
    """True while slots are warmed with it: no row starts."""

    post_process: PostProcess | None = None
    needs_post_processing: bool = False
    """True if rows were accepted since post-processing last started."""
    post_processing: "asyncio.Task[None] | None" = None
    post_processing_blocked: bool = False
    """True while post-processing waits and the job shows why."""

    daily_tokens: int | None = None
    day: date | None = None
    """Day of `spent_today`."""
    spent_today: int = 0
    """Tokens of today, including rows that are not written yet."""
    charged: float = 0.0
    """Expected tokens of the rows in flight."""

    refusal: str = ""
    """Message of the server's last 429."""
    refused_until: float = 0.0
    """Until then the page shows the refusal."""
    wait_reason: str = ""
    """Sentence that the page shows now."""

    @property
    def model(self) -> str:
        return self.context.model

    @contextmanager
    def holding_slot(self) -> Iterator[None]:
        self.slots_held += 1
        try:
            yield
        finally:
            self.slots_held -= 1
            self.last_held_at = time.monotonic()

    def take_active_seconds(self) -> float:
        """Return the seconds since the last call, which start again."""
        now = time.monotonic()
        seconds, self.active_since = now - self.active_since, now
        return seconds

    def wait(self, seconds: float, reason: str) -> None:
        """Start no row for a while; rows in flight continue."""
        self.wait_until, self.waits_for = time.monotonic() + seconds, reason

    def stop_post_processing(self) -> None:
        if self.post_processing is not None:
            self.post_processing.cancel()

    @property
    def may_start(self) -> bool:
        """True if this server works on the job now."""
        return not self.is_resting and (self.is_home or self.is_fallback or self.is_checked)

    @property
    def is_resting(self) -> bool:
        """True if other servers work on the job and this one does not."""
        return self.is_standby or self.width == 0 or self.left_out_until > time.monotonic()

    def ready_limit(self, width: int, read_ahead: int) -> int:
        """Return how many rows to have ready; few of a shared job, which others may send sooner.

        Args:
            width: max rows in flight.
            read_ahead: rows of a job that no other server works on.
        """
        if self.is_shared or self.wants_all_servers:
            return width if self.width is None else min(width, self.width)
        return max(read_ahead, 4 * width)

    @property
    def is_full(self) -> bool:
        """True if no further row may start; the owner's limit goes before the measured one."""
        limits = [self.best_width, self.mixed_width] if self.width is None else [self.width]
        if any(limit is not None and self.running >= limit for limit in limits):
            return True
        # The last rows of a day run one by one, and none starts beyond the limit.
        budget = self.daily_tokens
        if budget is None:
            return False
        expected = self.spent_today + self.charged
        return self.spent_today >= budget or (self.running > 0 and expected >= budget)

    def update_limits(
        self, batch: Batch, server_id: int, servers: Sequence[BatchServer] = ()
    ) -> None:
        """Take over what people may change while the job runs, and the tokens committed today."""
        self.is_home, self.is_shared = batch.server_id == server_id, len(servers) > 1
        self.wants_all_servers = self.is_home and batch.all_servers
        self.is_fallback = any(
            entry.is_fallback and entry.server_id == server_id for entry in servers
        )
        self.is_standby = self.is_fallback and not any(
            entry.server_id == batch.server_id and entry.state == BatchServer.State.AWAY
            for entry in servers
        )
        self.weight, self.width = max(1, batch.weight), width_at(batch, server_id, servers)
        self.daily_tokens = batch.daily_tokens
        committed = batch.spent_today
        is_new_day = batch.day != self.day
        self.spent_today = committed if is_new_day else max(self.spent_today, committed)
        self.day = batch.day

    def use_spec(self, handler: Handler, spec: Any) -> None:
        """Take over what the spec says of rows that start from now on; those in flight go on."""
        self.context = self.context.with_spec(spec)
        self.row_tokens = handler.max_row_tokens(spec, self.context.thinking)
        self.lane = handler.row_lane(spec)
        self.asks_for_slots = handler.rows_ask_for_slots(spec)
        self.loses_work = lambda row: handler.row_loses_work(row, spec)

    def update_facts(self, server: Server | None) -> None:
        """Take over facts about the model that became known when it was loaded for a row."""
        facts = None if server is None else server.model(self.model)
        if facts is not None and facts.thinking != self.context.thinking:
            self.context = replace(self.context, thinking=facts.thinking)


def width_at(batch: Batch, server_id: int, servers: Sequence[BatchServer]) -> int | None:
    """Return a server's share of the max rows in parallel; None for all its slots."""
    working = [
        entry.server_id
        for entry in servers
        if entry.server_id == server_id or (entry.state in BUSY_STATES and not entry.is_fallback)
    ]
    if batch.width is None or len(working) < 2:
        return batch.width
    each, rest = divmod(batch.width, len(working))
    return each + (working.index(server_id) < rest if server_id in working else 0)


def model_at(batch: Batch, server: Server, servers: Sequence[BatchServer]) -> str:
    """Return the name of the job's model at one of its servers."""
    models = {entry.server_id: entry.model for entry in servers}
    return choose_target(server, models.get(server.pk) or batch.model).model


def build_job(
    batch: Batch,
    spec_hash: str,
    handler: Handler,
    server: Server,
    servers: Sequence[BatchServer] = (),
) -> ActiveJob:
    """Build a job from its batch, whose spec is parsed here and nowhere else."""
    chosen = choose_target(server, model_at(batch, server, servers))
    thinking = server.facts_of(chosen.model).thinking
    spec = handler.parse(batch.spec)
    is_home = batch.server_id == server.pk
    post_process = handler.post_processing(batch.pk, spec) if is_home else None
    job = ActiveJob(
        batch.pk,
        batch.name or f"Job {batch.pk}",
        batch.owner_id,
        max(1, batch.weight),
        batch.width,
        handler.runner(),
        JobContext(batch.pk, spec, chosen.model, chosen.client, thinking),
        batch.total,
        spec_hash=spec_hash,
        post_process=post_process,
        needs_post_processing=post_process is not None,
    )
    job.use_spec(handler, spec)
    job.shared_request = handler.request_to_share(spec, chosen.model, thinking)
    job.update_limits(batch, server.pk, servers)
    return job
