"""The jobs of one model server as its pump knows them: in step with the database, row by row."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date

from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.batch import handlers
from apps.batch.handlers import Afterwards, Context, Handler
from apps.batch.models import Batch, BatchStatus
from apps.batch.store import store
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.store import Row
from apps.llm.stream.resume import ResumableCompletion
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import choose_target

log = logging.getLogger(__name__)


@dataclass
class Job:
    """An active batch as the pump knows it."""

    id: int
    name: str
    owner: int
    weight: int
    width: int | None
    """How many of its rows may be in flight; None: as many as the server has slots."""
    handler: Handler
    context: Context
    row_tokens: int
    """The most tokens one of its requests may come to."""
    rows: int
    """How many it has in all."""
    ready: deque[Row] = field(default_factory=deque)
    drafts: dict[int, ResumableCompletion] = field(default_factory=dict)
    """Of rows whose slot was taken, by their ids, until they get another one."""
    running: int = 0
    dry: bool = False
    """No pending row was left when last asked."""
    since: float = 0.0
    """Until when the time it worked is on its account."""
    failures: int = 0
    """Permanent failures since a row last came through."""
    afterwards: Afterwards | None = None
    """Looks at its rows once they are accepted."""
    hashed: str = ""
    """Of its spec as it was read."""
    unsettled: bool = False
    """Rows were accepted that it has not begun to look at."""
    settling: "asyncio.Task[None] | None" = None
    """It is looking."""
    waits_to_settle: bool = False
    """It could not, and the job says why."""
    best: int | None = None
    """How many at once are fastest, where that was measured and fewer than all."""
    waits_until: float = 0.0
    """Another model is in use until then at least, where only some fit at once."""
    held: int = 0
    """Slots its rows hold; the others in flight wait for one."""
    held_at: float = field(default_factory=time.monotonic)
    """When it last held one."""
    daily_tokens: int | None = None
    day: date | None = None
    """Of which `spent` is."""
    spent: int = 0
    """Tokens of today, those that are not written yet included."""
    charged: float = 0.0
    """What its rows in flight may cost, by those before them."""
    refusal: str = ""
    """What the server said when it last refused one of its requests (429)."""
    refused_until: float = 0.0
    """So long the page says that."""
    says: str = ""
    """Why none of its rows has a slot, as the page says it."""

    @property
    def model(self) -> str:
        return self.context.model

    @contextmanager
    def holding_a_slot(self) -> Iterator[None]:
        """While one of its rows is at the server."""
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1
            self.held_at = time.monotonic()

    def stop_settling(self) -> None:
        if self.settling is not None:
            self.settling.cancel()

    @property
    def is_full(self) -> bool:
        """Whether as many rows are in flight as may be: a person's word counts first."""
        limit = self.width or self.best
        if limit is not None and self.running >= limit:
            return True
        # The last rows of a day's budget go one by one, and none begins beyond it.
        budget = self.daily_tokens
        if budget is None:
            return False
        return self.spent >= budget or (self.running > 0 and self.spent + self.charged >= budget)

    def follow(self, batch: Batch) -> None:
        """What a person may change while it runs, and what is committed of its budget."""
        self.weight, self.width = max(1, batch.weight), batch.width
        self.daily_tokens = batch.daily_tokens
        written = batch.spent_today
        is_new_day = batch.day != self.day
        self.spent = written if is_new_day else max(self.spent, written)
        self.day = batch.day


class Jobs:
    """Those that are active, by the id of their batch, and the rows that were read for them."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._jobs: dict[int, Job] = {}
        self._taken: dict[int, int] = {}
        """Batches by row, of rows read ahead, running or not yet written."""

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def ids(self) -> list[int]:
        return list(self._jobs)

    def find(self, batch_id: int) -> Job | None:
        return self._jobs.get(batch_id)

    # --- Whose turn it is ----------------------------------------------------

    @property
    def with_rows(self) -> list[Job]:
        return [job for job in self if job.ready and not job.is_full]

    def whose_turn_it_is(self, server: Server | None, model: str, *, runs: bool) -> list[Job]:
        """All with rows; where only some models fit at once, those of one model after the other.

        A job on another model would have the server unload this one and load it again.

        Args:
            model: whose rows started last.
            runs: whether any of them is still in flight.
        """
        ready = self.with_rows
        if server is None or not server.swaps:
            return ready
        now = time.monotonic()
        ready = [job for job in ready if job.waits_until <= now]
        same = [job for job in ready if job.model == model]
        if same or runs:
            return same
        loaded = [job for job in ready if job.model in server.loaded_models]
        return loaded or ready

    # --- Rows ----------------------------------------------------------------

    def low(self, width: Callable[[str], int]) -> list[Job]:
        """Those that will soon have no row left."""
        return [job for job in self if not job.dry and len(job.ready) < 2 * width(job.model)]

    async def read(self, job: Job, limit: int) -> None:
        """Reads a job's next rows."""
        skip = frozenset(self._taken)
        job.dry = True  # but not if a row is put back meanwhile
        rows = await in_db(store.pending, job.id, limit=limit, skip=skip)
        job.dry = job.dry and len(rows) < limit
        if self._jobs.get(job.id) is job:  # not paused meanwhile
            job.ready.extend(rows)
            self._taken.update((row.pk, job.id) for row in rows)

    def written(self, row: Row, *, went_back: bool) -> None:
        """What became of a row is in the database; one that went back is found there again.

        One with a draft is the next: the server may have in its cache what was written.
        """
        job = self.find(row.batch_id)
        if went_back and job is not None and row.pk in job.drafts:
            job.ready.appendleft(row)
            return
        self._taken.pop(row.pk, None)
        if job is None:
            return
        if went_back:
            job.dry = False
        elif job.afterwards is not None:
            job.unsettled = True

    def refilled(self, batch_ids: Sequence[int]) -> None:
        """New rows are there to be read."""
        for job in filter(None, map(self.find, batch_ids)):
            job.dry = False

    # --- In step with the database -------------------------------------------

    async def look(self, server: Server | None, *, finish: bool) -> list[Job]:
        """Brings the jobs in step with what people do with them. Returns those that are new."""
        if finish:
            # Of what an earlier pump left it is not known yet whether it has been looked at.
            # Of rows that are not written yet neither: they may be accepted between this and that.
            unwritten = set(self._taken.values())
            settled = [
                job.id
                for job in self
                if not job.unsettled and not job.settling and job.id not in unwritten
            ]
            self.refilled(await in_db(store.finish_batches, self._lease, settled))
        batches = await in_db(store.active_batches, self._lease.server_id)
        for gone in self._jobs.keys() - {batch.pk for batch, _ in batches}:
            self.forget(gone)
        new = []
        for batch, hashed in batches:
            try:
                if (known := self.find(batch.pk)) is not None:
                    await self._follow(known, batch, hashed)
                    _learn(known, server)
                elif (handler := handlers.find(batch.handler)) is None:
                    reason = f"Nothing here knows how to work “{batch.handler}” rows."
                    await self.set_aside([batch.pk], BatchStatus.FAILED, reason)
                elif server is not None:
                    batch.spec = await in_db(store.spec_of, batch.pk)
                    self._jobs[batch.pk] = _job(batch, hashed, handler, server)
                    new.append(self._jobs[batch.pk])
            except Batch.DoesNotExist:
                continue  # deleted at this moment
            except (DatabaseError, RedisError, LeaseLost):
                raise
            except Exception as error:  # what one job says must not end the pump of the others
                log.exception("Reading batch %s", batch.pk)
                reason = (
                    f"The stored recipe of this job cannot be read: {error} It may be from "
                    "another version. Start a new job like this one and correct the recipe there."
                )
                await self.set_aside([batch.pk], BatchStatus.FAILED, reason)
        return new

    async def _follow(self, job: Job, batch: Batch, hashed: str) -> None:
        """A person has changed it, or not."""
        job.follow(batch)
        if job.hashed == hashed:
            return
        spec = await in_db(store.spec_of, batch.pk)  # rows in flight end by the old one
        job.afterwards = handlers.afterwards(batch.handler, batch.pk, spec)
        job.context = replace(job.context, spec=spec, _made={})
        job.unsettled = job.afterwards is not None
        job.hashed = hashed

    def move(self, server: Server) -> None:
        """The server has another address or key: rows that start from now on are sent there."""
        for job in self:
            client = choose_target(server, job.model).client
            job.context = replace(job.context, client=client)

    def forget(self, batch_id: int) -> None:
        job = self._jobs.pop(batch_id)
        job.stop_settling()
        for row in job.ready:
            self._taken.pop(row.pk, None)
        job.ready.clear()

    async def set_aside(self, batch_ids: list[int], status: BatchStatus, reason: str) -> None:
        """Pauses or fails jobs, and says why."""
        await in_db(store.rest, self._lease, batch_ids, status=status, reason=reason)
        for batch_id in batch_ids:
            if batch_id in self._jobs:
                self.forget(batch_id)


def _learn(job: Job, server: Server | None) -> None:
    """What a model is may be known only when it was loaded for the first rows."""
    facts = None if server is None else server.model(job.model)
    if facts is not None and facts.thinking != job.context.thinking:
        job.context = replace(job.context, thinking=facts.thinking)


def _job(batch: Batch, hashed: str, handler: Handler, server: Server) -> Job:
    chosen = choose_target(server, batch.model)
    thinking = server.facts_of(chosen.model).thinking
    afterwards = handlers.afterwards(batch.handler, batch.pk, batch.spec)
    job = Job(
        batch.pk,
        getattr(batch, "name", "") or f"Job {batch.pk}",
        batch.owner_id,
        max(1, batch.weight),
        batch.width,
        handler,
        Context(batch.pk, batch.spec, chosen.model, chosen.client, thinking),
        handlers.row_tokens(batch.handler, batch.spec, thinking),
        batch.total,
        afterwards=afterwards,
        unsettled=afterwards is not None,
        hashed=hashed,
    )
    job.follow(batch)
    return job
