"""Checks of when a model thinks, and for how long. Pure."""

from collections.abc import Iterator

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.statistics.share import Share
from apps.tuning.hooks import HOURS

# Fewer than these, or a share that may be smaller, is no habit of the server.
FEWEST_ANSWERS, SMALLEST_SHARE = 3, 0.05
ADVISED_BUDGET = 256


def check_thinking(reading: Reading, answers: Answers) -> Finding | None:
    answer = answers.thinking_off
    if answer is None or not answer.has_thought:
        return None
    return Finding(
        code="thinks-anyway",
        severity=Severity.FAULT,
        what="The model thinks although a request turns thinking off.",
        evidence="A request with enable_thinking: false and reasoning_effort: none was answered "
        "with a thought.",
        cost=(
            f"All {answer.tokens} tokens that the answer was allowed went into the thought."
            if not answer.text
            else NOT_MEASURED
        ),
        advice="Use a chat template with a switch. Or have the server end each thought after its "
        "first token; then no request gets one.",
        flags=("--reasoning-budget 1",),
    )


def check_max_tokens(reading: Reading, answers: Answers) -> Finding | None:
    """Thoughts that use up the tokens of an answer before it begins."""
    thought, off = answers.thought, answers.thinking_off
    evidence = list(_evidence(reading, answers))
    if not evidence or (off is not None and off.has_thought):  # that is another finding
        return None
    return Finding(
        code="only-thought",
        severity=Severity.FAULT,
        what="Thinking uses up max tokens, and no answer is written.",
        evidence=" ".join(evidence),
        cost=(
            f"{thought.tokens:,} tokens and {thought.seconds:.1f} s for an empty answer."
            if thought is not None and thought.is_cut
            else NOT_MEASURED
        ),
        advice="Limit each thought at the server. Or have programs turn thinking off, or raise "
        "max_tokens.",
        flags=(f"--reasoning-budget {ADVISED_BUDGET}",) if reading.is_llama_cpp else (),
    )


def _evidence(reading: Reading, answers: Answers) -> Iterator[str]:
    if (thought := answers.thought) is not None and thought.is_cut:
        yield (
            f"A request with max_tokens {thought.allowed:,} that says nothing of thinking was "
            "answered with a thought alone."
        )
    traffic = reading.traffic
    if traffic.only_thought < FEWEST_ANSWERS:
        return
    share = Share(traffic.only_thought, traffic.ended)
    if share.interval[0] >= SMALLEST_SHARE:
        yield f"In the last {HOURS} hours {share} answers of chats and programs ended so."
