"""Checks of how streamed answers arrive and end. Pure."""

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.hooks import HOURS

# Requests that a clock ends are all of one age. Those of a server that fails are of any age, or
# young.
FEWEST_CUTS, SHORTEST_SECONDS, LARGEST_SPREAD = 3, 10.0, 0.1


def check_arrival(reading: Reading, answers: Answers) -> Finding | None:
    """A stream whose tokens are held back on the way."""
    arrival = answers.arrival
    if arrival is None or not arrival.is_late:
        return None
    return Finding(
        code="buffered",
        severity=Severity.FAULT,
        what="Something between Workbench and the server holds streamed answers back.",
        evidence=(
            f"The server wrote {arrival.tokens:,} tokens in {arrival.generation:.1f} s. They came "
            f"within {arrival.arrival:.1f} s."
        ),
        cost=f"Each token came {arrival.delay:.2f} s late on average.",
        advice="Turn buffering off in the proxy in front of the server: proxy_buffering off in "
        "nginx. Compression of responses holds them back too.",
    )


def check_leaving(reading: Reading, answers: Answers) -> Finding | None:
    """An answer that is written on after its reader has closed it."""
    leaving = answers.leaving
    if leaving is None or not leaving.is_ignored:
        return None
    return Finding(
        code="not-cancelled",
        severity=Severity.FAULT,
        what="The server writes answers to their end after their reader has left.",
        evidence=(
            "A streamed answer was closed at its first token. /slots then showed its slot writing "
            f"for {leaving.seconds:.1f} s more."
        ),
        cost=(
            f"{leaving.seconds:.1f} s of a slot and {leaving.tokens:,} tokens, of at most "
            f"{leaving.allowed:,} that the answer was allowed. Each Stop costs the rest of its "
            "answer."
        ),
        advice="Look for a proxy in front of the server that reads on when its client is gone, "
        "such as nginx with proxy_ignore_client_abort on. Have it close its request too.",
    )


def check_cut_off(reading: Reading, answers: Answers) -> Finding | None:
    """Requests that something on the way ends at an age, however far the answer is.

    Recorded alone: to ask would take as long as the requests that are cut off.
    """
    cuts = reading.traffic.cuts
    if cuts.requests < FEWEST_CUTS or cuts.mean < SHORTEST_SECONDS:
        return None
    if cuts.spread > LARGEST_SPREAD * cuts.mean:
        return None
    return Finding(
        code="cut-off",
        severity=Severity.FAULT,
        what=f"A proxy in front of the server ends requests after {cuts.mean:.0f} s.",
        evidence=(
            f"In the last {HOURS} hours {cuts.requests:,} requests were ended on the way, at an "
            f"age of {cuts.mean:.1f} s on average (standard deviation {cuts.spread:.1f} s)."
        ),
        cost=f"{cuts.requests:,} failed requests, {cuts.mean * cuts.requests:,.0f} s of waiting.",
        advice="Raise the timeout of the proxy: proxy_read_timeout in nginx, "
        "response_header_timeout in Olla. Long prompts and queues need minutes.",
    )
