"""The active jobs of a model server, in step with the database."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.batch.handlers import find_handler
from apps.batch.models import Batch, BatchStatus
from apps.batch.pump.active_job import ActiveJob, build_job
from apps.batch.store import claims, job_writes, reads
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.row_events import Finished, Returned
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import choose_target

log = logging.getLogger(__name__)

# A server that could not do a job of several servers tries again after this.
LEFT_OUT_SECONDS = 30.0


class ActiveJobs:
    """Jobs by batch id, with the rows that were read for them."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._jobs: dict[int, ActiveJob] = {}
        self._read: dict[int, int] = {}
        """Batches by key of rows that were read and are not finished and written."""
        self._dropped: list[int] = []
        """Keys of claimed rows to give back."""

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
        now = time.monotonic()
        return [
            job
            for job in self
            if job.ready and not job.is_full and job.may_start and job.wait_until <= now
        ]

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
        same = [job for job in ready if job.model == model]
        if same or in_flight:
            return same
        loaded = [job for job in ready if job.model in server.loaded_models]
        return loaded or ready

    def low_on_rows(self, width: Callable[[str], int]) -> list[ActiveJob]:
        """Return the jobs that need rows from the database soon."""
        return [
            job
            for job in self
            if not job.exhausted
            and job.may_start
            and len(job.ready) < job.ready_limit(width(job.model), 0) / 2
        ]

    async def read_rows(self, job: ActiveJob, limit: int) -> None:
        """Claim up to this many rows more."""
        job.exhausted = True  # a row that is returned meanwhile resets it
        rows = await in_db(claims.claim_rows, self._lease, job.id, limit)
        job.exhausted = job.exhausted and len(rows) < limit
        if self._jobs.get(job.id) is job:  # not paused meanwhile
            job.ready.extend(rows)
            self._read.update((row.pk, job.id) for row in rows)
        else:
            self._dropped += [row.pk for row in rows]

    def row_written(self, event: Finished | Returned) -> None:
        """Forget a row that was written; a returned one is claimed again.

        A returned row with a draft starts next: the server may still cache its answer.
        """
        row, is_returned = event.row, isinstance(event, Returned)
        job = self.find(row.batch_id)
        if isinstance(event, Returned) and event.keeps_claim:
            if job is not None and row.pk in job.drafts:
                job.ready.appendleft(row)
                return
            self._dropped.append(row.pk)
        self._read.pop(row.pk, None)
        if job is None:
            return
        if is_returned:
            job.exhausted = False
        elif job.post_process is not None:
            job.needs_post_processing = True

    def drop_ready_rows(self, jobs: Iterable[ActiveJob]) -> None:
        """Give the rows of these jobs that have not started to other servers."""
        for job in jobs:
            for row in job.ready:
                self._read.pop(row.pk, None)
                job.drafts.pop(row.pk, None)
                self._dropped.append(row.pk)
            job.ready.clear()
            job.exhausted = False

    async def release_dropped(self) -> None:
        if self._dropped:
            keys = list(self._dropped)
            await in_db(claims.release_rows, self._lease, keys)
            del self._dropped[: len(keys)]

    def rows_added(self, batch_ids: Sequence[int]) -> None:
        for job in filter(None, map(self.find, batch_ids)):
            job.exhausted = False

    # --- In step with the database -------------------------------------------

    async def refresh(self, server: Server | None, *, finish: bool) -> list[ActiveJob]:
        """Follow changes by people, and with `finish` end jobs without open rows.

        Returns the jobs that are new.
        """
        await self.release_dropped()
        if finish:
            await self._look_for_rows_of_others()
            added = await in_db(job_writes.finish_batches, self._lease, self._finishable())
            self.rows_added(added)
        batches = await in_db(reads.active_batches, self._lease.server_id)
        for gone in self._jobs.keys() - {batch.pk for batch, _ in batches}:
            self.forget(gone)
        self.drop_ready_rows(job for job in self if not job.may_start)
        found = [await self._refresh_one(batch, hashed, server) for batch, hashed in batches]
        return [job for job in found if job is not None]

    def _finishable(self) -> list[int]:
        # Rows that are not written yet may be accepted and then need post-processing.
        unwritten = set(self._read.values())
        return [
            job.id
            for job in self
            if job.is_home
            and not job.needs_post_processing
            and not job.post_processing
            and job.id not in unwritten
        ]

    async def _look_for_rows_of_others(self) -> None:
        """Have rows post-processed that other servers finished, before their job ends."""
        for job in self:
            if job.is_shared and job.post_process is not None and not job.needs_post_processing:
                last = await in_db(reads.last_finished, job.id)
                if last is not None and last != job.finished_until:
                    job.finished_until, job.needs_post_processing = last, True

    async def _refresh_one(
        self, batch: Batch, spec_hash: str, server: Server | None
    ) -> ActiveJob | None:
        """Update a known job or add a new one, which is returned."""
        try:
            known = self.find(batch.pk)
            if known is not None and known.is_home != (batch.server_id == self._lease.server_id):
                self.forget(batch.pk)  # its own server was removed
                known = None
            if known is not None:
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
        self._jobs[batch.pk] = job = build_job(
            batch, spec_hash, handler, server, list(batch.servers.all())
        )
        return job

    async def _update(self, job: ActiveJob, batch: Batch, spec_hash: str) -> None:
        was_shared = job.is_shared
        job.update_limits(batch, self._lease.server_id, list(batch.servers.all()))
        if job.is_shared and not was_shared:
            self.drop_ready_rows([job])  # the others take their part of them
        handler = find_handler(batch.handler)
        if job.spec_hash == spec_hash or handler is None:
            return
        spec = handler.parse(await in_db(reads.spec_of, batch.pk))
        if job.is_home:
            job.post_process = handler.post_processing(batch.pk, spec)
        job.use_spec(handler, spec)
        job.needs_post_processing = job.post_process is not None
        job.spec_hash = spec_hash

    def use_server(self, server: Server) -> None:
        """Send rows that start from now on to the server's new address or with its new key."""
        for job in self:
            job.context = replace(job.context, client=choose_target(server, job.model).client)

    def forget(self, batch_id: int) -> None:
        job = self._jobs.pop(batch_id)
        job.stop_post_processing()
        self.drop_ready_rows([job])

    async def deactivate(self, batch_ids: list[int], status: BatchStatus, reason: str) -> None:
        """Pause or fail jobs, with the reason that the page shows."""
        await in_db(job_writes.set_status, self._lease, batch_ids, status=status, reason=reason)
        for batch_id in batch_ids:
            if batch_id in self._jobs:
                self.forget(batch_id)

    async def leave_or_deactivate(self, job: ActiveJob, status: BatchStatus, reason: str) -> None:
        """Leave a job to its other servers for a while; without others, pause or fail it."""
        if not job.is_shared or not await in_db(job_writes.leave_out, self._lease, job.id, reason):
            return await self.deactivate([job.id], status, reason)
        job.left_out_until = time.monotonic() + LEFT_OUT_SECONDS
        job.wait_reason = reason
        job.consecutive_failures = 0
        self.drop_ready_rows([job])
