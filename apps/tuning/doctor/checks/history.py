"""Checks of what a server did against what it did before. Pure."""

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.statistics.slower import ratio_of
from apps.tuning.hooks import HOURS

# The speed must have fallen so far with 95 % certainty.
LARGEST_RATIO = 0.85


def check_slower(reading: Reading, answers: Answers) -> Finding | None:
    """Generation that is slower than in the week before, with the same load."""
    speeds = reading.traffic.speeds
    ratio = ratio_of(speeds)
    if ratio is None or ratio.high > LARGEST_RATIO:
        return None
    now, before = (sum(hours) / len(hours) for hours in (speeds.now, speeds.before))
    return Finding(
        code="slower",
        severity=Severity.FAULT,
        what="The server generates more slowly than in the week before.",
        evidence=(
            f"{now:.1f} tokens/s in the last {HOURS} hours, {before:.1f} in the seven days before:"
            f" {1 - ratio.value:.0%} less (95% interval {1 - ratio.high:.0%} to"
            f" {1 - ratio.low:.0%}; {len(speeds.now)} and {len(speeds.before)} hours)."
            " As many slots were busy as before, or fewer."
        ),
        cost=f"Each answer takes {1 / ratio.value:.1f} times as long.",
        advice="See what changed: the build, flags, other programs on the GPU, its temperature. "
        "Long chats are slower too.",
    )
