"""Checks of what a model that chats finds in its prompt cache. Pure."""

from collections.abc import Iterator

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks.prompts.reasons import (
    CACHE_REUSE,
    Reason,
    cache_reasons,
    value_of,
)
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.prompt_answers import PromptRead
from apps.tuning.doctor.reading import Reading

UNKNOWN = (
    "The reason is not known. Models with a sliding window or recurrent layers may not keep their "
    "prompts; another program may have used the slot."
)


def check_prompt_cache(reading: Reading, answers: Answers) -> Finding | None:
    """A prompt is processed again whose beginning was just processed."""
    again, moves = answers.again, answers.rendered is not None and answers.rendered.moves
    if not reading.is_llama_cpp or again is None or again.is_cached or moves:
        return None
    if_asked = answers.again_if_asked
    is_off = if_asked is not None and if_asked.is_cached
    reasons = [] if is_off else cache_reasons(reading)
    return Finding(
        code="prompt-cache",
        severity=Severity.FAULT,
        what="Every message of a chat has the whole chat processed again.",
        evidence=" ".join(_evidence(answers, again, reasons)),
        cost=cost_of(again, if_asked if is_off else None),
        measured=Amount(value=again.reprocessed, unit=Unit.TOKENS),
        advice=_advice(reasons, is_off=is_off),
        flags=("--cache-prompt",) if is_off else tuple(reason.flag for reason in reasons),
    )


def check_cache_reuse(reading: Reading, answers: Answers) -> Finding | None:
    """`--cache-reuse` on a model that cannot move what it has processed.

    That nothing was reused proves nothing by itself: the request may have had another slot.
    """
    again, changed, kind = answers.again, answers.changed, _fixed_layers(reading)
    wanted = value_of(reading.command, CACHE_REUSE)
    if wanted in {"", "0"} or not kind or again is None or changed is None:
        return None
    if not again.is_cached or changed.is_cached:
        return None
    return Finding(
        code="no-cache-reuse",
        severity=Severity.ADVICE,
        what="--cache-reuse has no effect on this model.",
        evidence=(
            f"The command has --cache-reuse {wanted}, and the model has {kind}. Of a prompt that "
            f"differed from the one before in its first character alone, {changed.cached:,} of "
            f"{changed.tokens:,} tokens came from the prompt cache."
        ),
        cost=cost_of(changed, again),
        measured=Amount(value=changed.reprocessed, unit=Unit.TOKENS),
        advice="Leave it out: such models cannot move what they have processed. Keep the beginning "
        "of prompts the same instead.",
        flags=("--cache-reuse 0",),
    )


def cost_of(again: PromptRead, cached: PromptRead | None) -> str:
    """What a prompt took that the cache could have had, and what one took that it had."""
    text = f"{again.reprocessed:,} tokens processed again, first token after "
    text += f"{again.seconds:.2f} s"
    return f"{text} instead of {cached.seconds:.2f} s." if cached else f"{text}."


def _fixed_layers(reading: Reading) -> str:
    """What keeps a model from moving what it has processed; "": nothing, or not known."""
    if reading.shape is None:
        return ""
    if reading.shape.sliding_window:
        return "a sliding window"
    return "recurrent layers" if reading.shape.state_bytes else ""


def _evidence(answers: Answers, again: PromptRead, reasons: list[Reason]) -> Iterator[str]:
    yield (
        f"Of a prompt whose beginning the server had just processed, {again.cached:,} of "
        f"{again.tokens:,} tokens came from the prompt cache."
    )
    if_asked = answers.again_if_asked
    if if_asked is not None and if_asked.is_cached:
        yield (
            f"When the request itself asked for the cache, {if_asked.cached:,} of "
            f"{if_asked.tokens:,} did."
        )
    if (changed := answers.changed) is not None:
        yield f"One with another first character took {changed.seconds:.2f} s to its first token."
    yield from (reason.text for reason in reasons)


def _advice(reasons: list[Reason], *, is_off: bool) -> str:
    if is_off:
        return "The cache is off by default on this server. Start it without --no-cache-prompt."
    return "Start the server with the flags below." if reasons else UNKNOWN
