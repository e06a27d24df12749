"""Small charts of a server's requests over the last 15 minutes. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from apps.llm.permits import BUCKET_SECONDS, UsageBucket

NOW_SECONDS = 60  # the numbers beside the charts are of the last minute


@dataclass(frozen=True)
class Chart:
    """One small chart: its name, and the numbers beside its line."""

    name: str
    title: str
    now: str
    peak: str


def charts(buckets: Sequence[UsageBucket], *, embeds: bool) -> list[Chart]:
    """The four charts; a server that only embeds generates nothing and caches nothing.

    No charts where there were no requests: the page has a sentence for that.
    """
    if not any(bucket.prompt or bucket.completion or bucket.waited for bucket in buckets):
        return []
    recent = buckets[-NOW_SECONDS // BUCKET_SECONDS :]
    shown = [_rate_chart("prompt", "Prompt tokens/s", recent, buckets)]
    if not embeds:
        shown.append(_rate_chart("completion", "Generated tokens/s", recent, buckets))
    waited = sum(bucket.waited for bucket in buckets)
    shown.append(
        Chart(
            "waited",
            "Requests that waited",
            str(sum(b.waited for b in recent)) if waited else "none",
            f"{waited:,} in 15 min" if waited else "in 15 minutes",
        )
    )
    if not embeds and not any(bucket.reported for bucket in buckets):
        shown.append(Chart("cached", "Prompt cache hits", "not reported", ""))
    elif not embeds:
        shown.append(
            Chart("cached", "Prompt cache hits", _share(recent), f"{_share(buckets)} over 15 min")
        )
    return shown


def _rate_chart(
    name: str, title: str, recent: Sequence[UsageBucket], buckets: Sequence[UsageBucket]
) -> Chart:
    most = max((getattr(bucket, name) for bucket in buckets), default=0) / BUCKET_SECONDS
    now = sum(getattr(bucket, name) for bucket in recent) / NOW_SECONDS
    return Chart(name, title, f"{now:,.0f}", f"peak {most:,.0f}")


def _share(buckets: Sequence[UsageBucket]) -> str:
    told = sum(bucket.reported for bucket in buckets)
    return f"{sum(bucket.cached for bucket in buckets) / told * 100:.0f}%" if told else "–"


def series(buckets: Sequence[UsageBucket]) -> str:
    """JSON with one number per chart and bucket, oldest first; null where nothing was counted."""
    return json.dumps(
        {
            "start": buckets[0].start if buckets else 0,
            "step": BUCKET_SECONDS,
            "prompt": [bucket.prompt / BUCKET_SECONDS for bucket in buckets],
            "completion": [bucket.completion / BUCKET_SECONDS for bucket in buckets],
            "waited": [bucket.waited for bucket in buckets],
            "cached": [
                round(bucket.cached / bucket.reported, 3) if bucket.reported else None
                for bucket in buckets
            ],
        },
        separators=(",", ":"),
    )
