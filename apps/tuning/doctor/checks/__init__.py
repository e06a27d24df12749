"""The checks: each takes what was read and answered, and returns a finding or None. Pure."""

from collections.abc import Callable

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks import (
    abilities,
    access,
    drafts,
    embeddings,
    gpu,
    history,
    liveness,
    rates,
    slots,
    streams,
    swapping,
    thinking,
)
from apps.tuning.doctor.checks.prompts import cache, templates
from apps.tuning.doctor.findings import Finding
from apps.tuning.doctor.reading import Reading

Check = Callable[[Reading, Answers], Finding | None]

CHECKS: tuple[Check, ...] = (
    liveness.check_stuck,
    access.check_key,
    slots.check_context,
    slots.check_prompt_sizes,
    cache.check_prompt_cache,
    cache.check_cache_reuse,
    templates.check_moving_template,
    templates.check_moving_history,
    templates.check_stripped_reasoning,
    templates.check_clock_in_template,
    abilities.check_tools,
    thinking.check_thinking,
    thinking.check_max_tokens,
    abilities.check_schema,
    streams.check_arrival,
    streams.check_leaving,
    streams.check_cut_off,
    drafts.check_drafts,
    drafts.check_drafts_made,
    gpu.check_gpu,
    gpu.check_gpu_flags,
    rates.check_generation_rate,
    rates.check_prompt_rate,
    history.check_slower,
    swapping.check_swapping,
    slots.check_one_slot,
    embeddings.check_pooling,
    embeddings.check_pooling_type,
    embeddings.check_norm,
    embeddings.check_batch,
    access.check_metrics,
    access.check_slots_shown,
)


def check_all(reading: Reading, answers: Answers) -> list[Finding]:
    """All findings, in the order of the checks. What is not known makes none."""
    found = (check(reading, answers) for check in CHECKS)
    return [finding for finding in found if finding is not None]
