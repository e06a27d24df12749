"""The checks: each takes what was read and answered, and returns a finding or None. Pure."""

from collections.abc import Callable

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks import access, chat, embeddings
from apps.tuning.doctor.findings import Finding
from apps.tuning.doctor.reading import Reading

Check = Callable[[Reading, Answers], Finding | None]

CHECKS: tuple[Check, ...] = (
    access.check_key,
    chat.check_context,
    chat.check_prompt_cache,
    chat.check_moving_template,
    chat.check_clock_in_template,
    chat.check_tools,
    chat.check_thinking,
    chat.check_schema,
    chat.check_one_slot,
    embeddings.check_pooling,
    embeddings.check_norm,
    embeddings.check_batch,
    access.check_metrics,
    access.check_slots_shown,
)


def check_all(reading: Reading, answers: Answers) -> list[Finding]:
    """All findings, in the order of the checks. What is not known makes none."""
    found = (check(reading, answers) for check in CHECKS)
    return [finding for finding in found if finding is not None]
