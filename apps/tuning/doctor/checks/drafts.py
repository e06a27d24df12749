"""Checks of drafts (speculative decoding). Pure."""

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.hooks import HOURS, Drafts

# With fewer tokens chance decides.
FEWEST_TOKENS = 64
# Tokens that one pass of the model yields, at least, if drafts are to pay: a draft model that takes
# a tenth of the time, and proposes two tokens or three, costs as much as that.
LEAST_YIELD = 1.2


def check_drafts(reading: Reading, answers: Answers) -> Finding | None:
    """Drafts of which so few are accepted that making them costs more than they save."""
    asked, recorded = answers.drafts, reading.traffic.drafts
    if is_wasted(asked):
        found, when = asked, "In the answers to the doctor"
    elif is_wasted(recorded):
        found, when = recorded, f"In the last {HOURS} hours"
    else:
        return None
    return Finding(
        code="drafts-rejected",
        severity=Severity.FAULT,
        what="Nearly all drafts are made for nothing.",
        evidence=(
            f"{when} the model accepted {found.accepted:,} of {found.drafted:,} drafted tokens. "
            f"One pass wrote {found.written / found.steps:.2f} tokens; without drafts it writes 1."
        ),
        cost=(
            f"Answers come at most {found.written / found.steps - 1:.0%} faster with drafts, less "
            "what making them costs."
        ),
        advice="Start the server without drafts, or with a draft model of the same family.",
        flags=("--spec-type none",) if reading.is_llama_cpp else (),
    )


def is_wasted(drafts: Drafts) -> bool:
    """True if a pass rejects a token or more, on average, and yields hardly more than its own."""
    if drafts.written < FEWEST_TOKENS or drafts.steps <= 0:
        return False
    rejected = drafts.drafted - drafts.accepted
    return rejected >= drafts.steps and drafts.written < LEAST_YIELD * drafts.steps
