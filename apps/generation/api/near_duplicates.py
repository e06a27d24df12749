"""Near-duplicate thresholds of a job over HTTP."""

from collections.abc import Awaitable
from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema

from apps.batch.services import wake_pump
from apps.core.api import ApiError
from apps.embeddings.errors import TextsTooLarge
from apps.generation.api.job_json import get_job_of
from apps.generation.api.router import router
from apps.generation.review.apply_threshold import apply_threshold
from apps.generation.review.near_duplicates import compare_rows
from apps.generation.review.row_comparison import By, ComparisonPending
from apps.runtime.async_db import in_db
from apps.similarity import thresholds


class NearOut(Schema):
    done: int
    total: int
    steps: list[int] | None = Field(None, description="Thresholds, in percent.")
    histogram: list[int] | None = Field(
        None, description="Row counts by similarity to the most similar earlier row, from 50% up."
    )
    below: int | None = None
    rows: int | None = None
    accepted: int | None = None
    seen: int | None = Field(None, description="Reviewed rows. They do not change.")
    out: list[int] | None = Field(None, description="Rows that each threshold would reject.")
    back: list[int] | None = Field(None, description="Rows that each threshold would restore.")


class NearIn(Schema):
    by: By = By.TEXT
    threshold: float | None = Field(
        ge=thresholds.MIN_SIMILARITY,
        le=1,
        description="Rounded to percent; null: nothing is rejected.",
    )


class NearApplied(Schema):
    rejected: int
    restored: int
    goes_on: bool


@router.get("/jobs/{pk}/near-duplicates", response=NearOut)
async def near_duplicates(request: HttpRequest, pk: int, by: By = By.TEXT) -> Any:
    """Return the effect of each threshold on the rows. Poll while `done` is less than `total`."""
    job = await in_db(get_job_of, request, pk)
    found = await _compared(compare_rows(job, by))
    if isinstance(found, ComparisonPending):
        return {"done": found.done, "total": found.total}
    shown = await in_db(found.as_dict)
    return {"done": shown["rows"], "total": shown["rows"], **shown}


@router.post("/jobs/{pk}/near-duplicates", response=NearApplied)
async def judge_again(request: HttpRequest, pk: int, data: NearIn) -> Any:
    """Judges the stored rows by another threshold. Rejected rows are kept and can come back."""
    job = await in_db(get_job_of, request, pk)
    step = None if data.threshold is None else round(100 * data.threshold)
    applied = await _compared(apply_threshold(job, data.by, step))
    if isinstance(applied, ComparisonPending):
        raise ApiError(409, "not_ready", "Not all rows are compared yet. Poll with GET first.")
    if applied.goes_on:
        await in_db(wake_pump, job.batch.server_id)
    return applied


async def _compared(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except TextsTooLarge as error:
        raise ApiError(422, "invalid", str(error)) from error
