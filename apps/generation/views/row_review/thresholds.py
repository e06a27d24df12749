"""The threshold for near duplicates on a job's page: what each would do, and doing it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import aget_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from apps.batch.services import wake_pump
from apps.embeddings.errors import TextsTooLarge
from apps.generation.models import Job
from apps.generation.review.apply_threshold import ThresholdResult, apply_threshold
from apps.generation.review.near_duplicates import compare_rows
from apps.generation.review.row_comparison import By, ComparisonPending, TooMany
from apps.llm.errors import LLMError
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer
from apps.similarity import thresholds

CANNOT = (TooMany, NoServer, LLMError, TextsTooLarge)
OFF = thresholds.STEPS[-1] + 1
"""On the slider: the place after the last threshold, where nothing goes."""


def step_of(threshold: float | None) -> int:
    """Return the slider position of a job's threshold."""
    return OFF if threshold is None else round(100 * threshold)


@require_safe
async def measured(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the effect of every threshold as JSON, or the progress, to be polled."""
    found = await _job(request, pk)
    by = request.GET.get("by", "")
    if by not in set(By):
        return JsonResponse({"error": "`by` must be “text” or “meaning”."}, status=400)
    try:
        shown = await compare_rows(found, By(by))
    except CANNOT as error:
        return JsonResponse({"error": str(error)})
    if isinstance(shown, ComparisonPending):
        return JsonResponse({"done": shown.done, "total": shown.total})
    return JsonResponse(await in_db(shown.as_dict))


@require_POST
async def apply(request: HttpRequest, pk: int) -> HttpResponse:
    """Judges the stored rows again by a threshold; from then on it is the job's."""
    found = await _job(request, pk)
    by, text = request.POST.get("by", ""), request.POST.get("threshold", "")
    step = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
    if by not in set(By) or not (step == OFF or step in thresholds.STEPS):
        first, last = thresholds.STEPS[0], thresholds.STEPS[-1]
        messages.error(request, f"A threshold is a whole number from {first} to {last} percent.")
        return redirect("generation:quality", pk)
    try:
        applied = await apply_threshold(found, By(by), None if step == OFF else step)
    except CANNOT as error:
        messages.error(request, str(error))
        return redirect("generation:quality", pk)
    if isinstance(applied, ComparisonPending):
        messages.error(request, "The rows are still being compared. Wait for the histogram.")
        return redirect("generation:quality", pk)
    messages.success(request, _summary(applied))
    if applied.goes_on:
        await in_db(wake_pump, found.batch.server_id)
    return redirect("generation:quality", pk)


def _summary(applied: ThresholdResult) -> str:
    summary = (
        f"{applied.rejected:,} row{'s' * (applied.rejected != 1)} rejected as near-duplicates, "
        f"{applied.restored:,} restored."
    )
    return (
        f"{summary} The job continues until it has enough accepted rows."
        if applied.goes_on
        else summary
    )


async def _job(request: HttpRequest, pk: int) -> Any:
    jobs = Job.objects.owned_by(await request.auser()).select_related("batch")
    return await aget_object_or_404(jobs, pk=pk)
