"""The active jobs of a model server, in step with the database."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.batch.handlers import find_handler
from apps.batch.models import Batch, BatchStatus
from apps.batch.pump.active_job import ActiveJob, build_job
from apps.batch.store import job_writes, reads
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.row_events import PendingRow
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import choose_target

log = logging.getLogger(__name__)


class ActiveJobs:
    """Jobs by batch id, with the rows that were read for them."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._jobs: dict[int, ActiveJob] = {}
        self._read: dict[int, int] = {}
        """Batches by key of rows that were read and are not finished and written."""

    def __iter__(self) -> Iterator[ActiveJob]:
        return iter(self._jobs.values())

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def ids(self) -> list[int]:
        return list(self._jobs)

    def find(self, batch_id: int) -> ActiveJob | None:
        return self._jobs.get(batch_id)

    # --- Rows ----------------------------------------------------------------

    @property
    def with_rows(self) -> list[ActiveJob]:
        return [job for job in self if job.ready and not job.is_full]

    def startable(self, server: Server | None, model: str, *, in_flight: bool) -> list[ActiveJob]:
        """Return the jobs whose rows may start now.

        On a server that loads few models at once, the jobs of one model come after those of
        another: each change unloads a model.

        Args:
            model: model of the last started row.
            in_flight: True if any row is in flight.
        """
        ready = self.with_rows
        if server is None or not server.swaps:
            return ready
        now = time.monotonic()
        ready = [job for job in ready if job.model_wait_until <= now]
        same = [job for job in ready if job.model == model]
        if same or in_flight:
            return same
        loaded = [job for job in ready if job.model in server.loaded_models]
        return loaded or ready

    def low_on_rows(self, width: Callable[[str], int]) -> list[ActiveJob]:
        """Return the jobs that need rows from the database soon."""
        return [job for job in self if not job.exhausted and len(job.ready) < 2 * width(job.model)]

    async def read_rows(self, job: ActiveJob, limit: int) -> None:
        skip = frozenset(self._read)
        job.exhausted = True  # a row that is returned meanwhile resets it
        rows = await in_db(reads.pending_rows, job.id, limit=limit, skip=skip)
        job.exhausted = job.exhausted and len(rows) < limit
        if self._jobs.get(job.id) is job:  # not paused meanwhile
            job.ready.extend(rows)
            self._read.update((row.pk, job.id) for row in rows)

    def row_written(self, row: PendingRow, *, returned: bool) -> None:
        """Forget a row that was written; a returned one is read from the database again.

        A returned row with a draft starts next: the server may still cache its answer.
        """
        job = self.find(row.batch_id)
        if returned and job is not None and row.pk in job.drafts:
            job.ready.appendleft(row)
            return
        self._read.pop(row.pk, None)
        if job is None:
            return
        if returned:
            job.exhausted = False
        elif job.post_process is not None:
            job.needs_post_processing = True

    def rows_added(self, batch_ids: Sequence[int]) -> None:
        for job in filter(None, map(self.find, batch_ids)):
            job.exhausted = False

    # --- In step with the database -------------------------------------------

    async def refresh(self, server: Server | None, *, finish: bool) -> list[ActiveJob]:
        """Follow changes by people, and with `finish` end jobs without open rows.

        Returns the jobs that are new.
        """
        if finish:
            added = await in_db(job_writes.finish_batches, self._lease, self._finishable())
            self.rows_added(added)
        batches = await in_db(reads.active_batches, self._lease.server_id)
        for gone in self._jobs.keys() - {batch.pk for batch, _ in batches}:
            self.forget(gone)
        found = [await self._refresh_one(batch, hashed, server) for batch, hashed in batches]
        return [job for job in found if job is not None]

    def _finishable(self) -> list[int]:
        # Rows that are not written yet may be accepted and then need post-processing.
        unwritten = set(self._read.values())
        return [
            job.id
            for job in self
            if not job.needs_post_processing and not job.post_processing and job.id not in unwritten
        ]

    async def _refresh_one(
        self, batch: Batch, spec_hash: str, server: Server | None
    ) -> ActiveJob | None:
        """Update a known job or add a new one, which is returned."""
        try:
            if (known := self.find(batch.pk)) is not None:
                await self._update(known, batch, spec_hash)
                known.update_facts(server)
                return None
            return await self._add(batch, spec_hash, server)
        except Batch.DoesNotExist:
            return None  # deleted at this moment
        except (DatabaseError, RedisError, LeaseLost):
            raise
        except Exception as error:  # the spec of one job must not end the pump of the others
            log.exception("Reading batch %s", batch.pk)
            reason = (
                f"The stored recipe of this job cannot be read: {error} It may be from "
                "another version. Start a new job like this one and correct the recipe there."
            )
            await self.deactivate([batch.pk], BatchStatus.FAILED, reason)
            return None

    async def _add(self, batch: Batch, spec_hash: str, server: Server | None) -> ActiveJob | None:
        handler = find_handler(batch.handler)
        if handler is None:
            reason = f"No feature runs rows of the kind “{batch.handler}”."
            await self.deactivate([batch.pk], BatchStatus.FAILED, reason)
            return None
        if server is None:
            return None
        batch.spec = await in_db(reads.spec_of, batch.pk)
        self._jobs[batch.pk] = job = build_job(batch, spec_hash, handler, server)
        return job

    async def _update(self, job: ActiveJob, batch: Batch, spec_hash: str) -> None:
        job.update_limits(batch)
        handler = find_handler(batch.handler)
        if job.spec_hash == spec_hash or handler is None:
            return
        spec = handler.parse(await in_db(reads.spec_of, batch.pk))
        job.post_process = handler.post_processing(batch.pk, spec)
        job.context = replace(job.context, spec=spec, _cache={})  # rows in flight use the old one
        job.needs_post_processing = job.post_process is not None
        job.spec_hash = spec_hash

    def use_server(self, server: Server) -> None:
        """Send rows that start from now on to the server's new address or with its new key."""
        for job in self:
            job.context = replace(job.context, client=choose_target(server, job.model).client)

    def forget(self, batch_id: int) -> None:
        job = self._jobs.pop(batch_id)
        job.stop_post_processing()
        for row in job.ready:
            self._read.pop(row.pk, None)
        job.ready.clear()

    async def deactivate(self, batch_ids: list[int], status: BatchStatus, reason: str) -> None:
        """Pause or fail jobs, with the reason that the page shows."""
        await in_db(job_writes.set_status, self._lease, batch_ids, status=status, reason=reason)
        for batch_id in batch_ids:
            if batch_id in self._jobs:
                self.forget(batch_id)
