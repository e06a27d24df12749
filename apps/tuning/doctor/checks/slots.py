"""Checks of the slots of a model that chats. Pure."""

from apps.servers.models import Use
from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.statistics.share import Share
from apps.tuning.hooks import HOURS

# A system prompt with two tools and a short question take about as much.
SMALLEST_CONTEXT = 1_024
ADVISED_CONTEXT = 4_096
JOB_SLOTS = 4
# Fewer than these, or a share that may be smaller, is an exception.
FEWEST_LOST, SMALLEST_SHARE = 3, 0.02
CELLS = 256


def check_context(reading: Reading, answers: Answers) -> Finding | None:
    """Slots that are too small for a chat, of a model that has room for more."""
    context, slots = reading.context, reading.slots
    if reading.embeds or not context or not slots or context >= SMALLEST_CONTEXT:
        return None
    if reading.context_trained and reading.context_trained <= context:
        return None
    each = min(ADVISED_CONTEXT, reading.context_trained or ADVISED_CONTEXT)
    return Finding(
        code="small-context",
        severity=Severity.FAULT,
        what=f"A prompt and its answer must fit into {context:,} tokens.",
        evidence=f"The server reports {slots} slots of {context:,} tokens each.",
        cost=(
            f"A short question with one tool, {answers.tool_prompt_tokens:,} tokens, did not fit."
            if answers.tool_prompt_tokens
            else NOT_MEASURED
        ),
        advice="-c is shared out among the slots. Give it as many tokens as all slots need, or "
        "start fewer slots. It takes memory: manage.py plan says how much.",
        flags=(f"-c {slots * each}", f"-np {slots}"),
    )


def check_prompt_sizes(reading: Reading, answers: Answers) -> Finding | None:
    """Prompts that come and do not fit into a slot: chats are cut, other requests refused."""
    context, prompts = reading.context, reading.traffic.prompts
    lost = prompts.cut + prompts.refused
    if reading.embeds or not context or context < SMALLEST_CONTEXT or lost < FEWEST_LOST:
        return None
    share = Share(lost, max(lost, prompts.requests))
    if share.interval[0] < SMALLEST_SHARE:
        return None
    each = _wanted_context(reading, context)
    return Finding(
        code="tight-context",
        severity=Severity.FAULT,
        what="Prompts that come do not fit into a slot.",
        evidence=(
            f"In the last {HOURS} hours 95% of {prompts.requests:,} prompts had at most "
            f"{prompts.usual:,} tokens, and all at most {prompts.largest:,}. A slot has "
            f"{context:,}. {share} lost earlier messages or were refused."
        ),
        cost=f"{prompts.cut:,} chats without their earlier messages, {prompts.refused:,} refused "
        "requests.",
        measured=Amount(value=share.part / share.whole, unit=Unit.SHARE),
        advice=(
            "Give each slot more tokens, or start fewer slots. It takes memory: manage.py plan "
            "says how much."
            if each > context
            else "A slot has all that the model was trained for. Use a model with a longer "
            "context, or shorter prompts."
        ),
        flags=(f"-c {reading.slots * each}", f"-np {reading.slots}")
        if reading.slots and each > context
        else (),
    )


def _wanted_context(reading: Reading, context: int) -> int:
    """Twice as many tokens, or room for the largest prompt and its answer."""
    largest = reading.traffic.prompts.largest * 5 // 4
    wanted = max(2 * context, -(-largest // CELLS) * CELLS)
    return min(wanted, reading.context_trained or wanted)


def check_one_slot(reading: Reading, answers: Answers) -> Finding | None:
    """One slot, on the server that jobs use."""
    if reading.embeds or reading.slots != 1 or Use.GENERATION not in reading.uses:
        return None
    context = reading.context
    return Finding(
        code="one-slot",
        severity=Severity.ADVICE,
        what="Jobs get one answer at a time, and wait while anybody chats.",
        evidence="The server reports 1 slot, and is the default for generation.",
        advice="Start it with more slots, and a -c for all of them together.",
        flags=(f"-np {JOB_SLOTS}", *([f"-c {JOB_SLOTS * context}"] if context else [])),
    )
