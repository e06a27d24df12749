"""Checks of whether a server that says it is ready answers at all. Pure."""

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.slots_seen import SlotsSeen

SEEN = {
    SlotsSeen.SILENT: " /slots did not answer either.",
    SlotsSeen.IDLE: " /slots showed a slot with nothing to do.",
    SlotsSeen.STILL: " /slots showed all slots at work, and none of them went on.",
}


def check_stuck(reading: Reading, answers: Answers) -> Finding | None:
    """A server that is healthy by its own word, and returns no token."""
    silence, recorded = answers.silence, reading.silent_seconds
    is_asked = silence is not None and silence.is_stuck
    if answers.has_token or not (is_asked or recorded is not None):
        return None
    evidence = []
    if silence is not None and is_asked:
        seen = SEEN.get(silence.slots, "")
        evidence = [f"A question of two words had no token after {silence.seconds:.0f} s.{seen}"]
    if recorded is not None:
        evidence.append(f"No request has had a token for {recorded:,.0f} s.")
    seconds = silence.seconds if silence is not None and is_asked else None
    return Finding(
        code="stuck",
        severity=Severity.FAULT,
        what="The server reports that it is ready, but returns no token.",
        evidence=" ".join(evidence),
        cost=f"Each request waits in vain: {seconds:.0f} s here." if seconds else NOT_MEASURED,
        measured=Amount(value=seconds, unit=Unit.SECONDS) if seconds else None,
        advice="Keep its log, whose last lines show where it stopped, and restart it.",
    )
