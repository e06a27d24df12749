"""Similarity of the stored rows of a job, by characters or by meaning.

Bounded in time also for 100,000 rows: what takes long (a signature or a vector for each row) is
worked out once, in parts, and kept.
"""

import time

from apps.generation.models import Job
from apps.generation.review.compare_by_meaning import compare_by_meaning
from apps.generation.review.compare_by_text import compare_by_text, fill_minhashes
from apps.generation.review.row_comparison import (
    SECONDS,
    TEXT_ROWS,
    By,
    ComparisonPending,
    RowComparison,
    TooMany,
    comparable_rows,
)
from apps.runtime.async_db import in_db


async def compare_rows(job: Job, by: By) -> RowComparison | ComparisonPending:
    """Compare the rows. Slow work is done in parts, see `ComparisonPending`.

    Raises:
        TooMany: so many rows are not compared.
        NoServer, LLMError, TextsTooLarge: comparing by meaning is not possible.
    """
    spec = job.spec
    if by is By.TEXT:
        count = await in_db(comparable_rows(job.batch_id, by).count)
        if count > TEXT_ROWS:
            raise TooMany(f"{count:,} rows. The limit for comparing is {TEXT_ROWS:,}.")
        left = await in_db(fill_minhashes, job.batch_id, spec, time.monotonic() + SECONDS)
        if left:
            return ComparisonPending(max(0, count - left), count)
        return await in_db(compare_by_text, job.batch_id, spec)
    return await compare_by_meaning(job.batch_id, spec)
