"""Checks of drafts (speculative decoding). Pure."""

from itertools import pairwise

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.hooks import HOURS, Drafts

# With fewer tokens chance decides.
FEWEST_TOKENS = 64
# Tokens that one pass of the model yields, at least, if drafts are to pay: a draft model that takes
# a tenth of the time, and proposes two tokens or three, costs as much as that.
LEAST_YIELD = 1.2
# Tokens of answers among which something repeats itself.
FEWEST_REPEATED = 5_000
LIMIT = frozenset({"--spec-draft-p-min", "--draft-p-min"})


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


def check_drafts_made(reading: Reading, answers: Answers) -> Finding | None:
    """Drafts that the server was told to make, and does not."""
    kind = answers.drafts_with or reading.drafts_with
    arrival, recorded = answers.arrival, reading.traffic
    if not kind or arrival is None or answers.drafts.drafted or recorded.drafts.drafted:
        return None
    # A draft model proposes something for each token; n-grams only where a text repeats itself.
    has_model = any(not one.startswith("ngram") for one in kind.split(","))
    needed = FEWEST_TOKENS if has_model else FEWEST_REPEATED
    written = arrival.tokens + recorded.written
    if written < needed:
        return None
    return Finding(
        code="no-drafts",
        severity=Severity.FAULT,
        what="The server is told to draft, and makes no drafts.",
        evidence=(
            f"It was started to draft with {kind}. In {written:,} tokens of answers, in the last "
            f"{HOURS} hours and to the doctor, it drafted none (draft_n in timings)."
        ),
        cost=f"{arrival.speed:.1f} tokens/s, as without drafts, and the memory of the draft model.",
        measured=Amount(value=arrival.speed, unit=Unit.TOKENS_PER_SECOND),
        advice="Read the log at its start: a draft model with other tokens is refused, and newer "
        "builds need --spec-type beside -md. High limits, such as --spec-draft-p-min 1, reject all "
        "drafts too.",
        flags=_flags(reading.command),
    )


def _flags(command: str) -> tuple[str, ...]:
    """What the command lacks, or has too high; without a command, no drafts."""
    words = command.replace("=", " ").split()
    if words and "--spec-type" not in words:
        return ("--spec-type draft-simple",)
    limits = [value for flag, value in pairwise(words) if flag in LIMIT]
    return ("--spec-draft-p-min 0",) if limits else ("--spec-type none",)


def is_wasted(drafts: Drafts) -> bool:
    """True if a pass rejects a token or more, on average, and yields hardly more than its own."""
    if drafts.written < FEWEST_TOKENS or drafts.steps <= 0:
        return False
    rejected = drafts.drafted - drafts.accepted
    return rejected >= drafts.steps and drafts.written < LEAST_YIELD * drafts.steps
