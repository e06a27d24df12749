"""Numbers and times as people read them. Built into every template (settings.TEMPLATES).

Where nothing was measured they show a dash. Django hands them "" for a key that is not there, as
in the metrics of a run that has not ended.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from apps.core.text import markdown as safe_markdown

register = template.Library()

Measured = float | Literal[""] | None
DASH = "–"


@register.filter
def percent(share: Measured, digits: int = 0) -> str:
    """0.9231 -> 92 %; with an argument of 1: 92.3 %."""
    return DASH if share is None or share == "" else f"{share * 100:.{digits}f}%"


@register.filter
def points(difference: Measured, digits: int = 1) -> str:
    """Between two shares, in percentage points: 0.0831 -> +8.3, 0 -> ±0."""
    if difference is None or difference == "":
        return DASH
    shown = f"{abs(difference) * 100:.{digits}f}"
    if not float(shown):
        return "±0"
    return f"{'+' if difference > 0 else '−'}{shown}"


@register.filter
def number(value: Measured, digits: int = 0) -> str:
    """12345.678 -> 12,346."""
    return DASH if value is None or value == "" else f"{value:,.{digits}f}"


@register.filter
def duration(seconds: Measured) -> str:
    """0.0423 -> 42 ms, 3.21 -> 3.2 s, 95 -> 1 min 35 s, 4000 -> 1 h 6 min."""
    if seconds is None or seconds == "":
        return DASH
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


@register.filter
def rough_duration(seconds: Measured) -> str:
    """An estimate: 3.2 -> 5 s, 95 -> 2 min, 4000 -> 1.1 h."""
    if seconds is None or seconds == "":
        return DASH
    if seconds < 60:
        return f"{max(5, 5 * round(seconds / 5))} s"
    if seconds < 3600:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


@register.filter
def day(moment: datetime) -> SafeString:
    """today 14:05, yesterday, 18 Nov; another year with its number. In the reader's time zone."""
    local, today = timezone.localtime(moment), timezone.localdate()
    if local.date() == today:
        return _time(moment, "day", f"today {local:%H:%M}")
    if local.date() == today - timedelta(days=1):
        return _time(moment, "day", "yesterday")
    shown = f"{local.day} {local:%b}"
    return _time(moment, "day", shown if local.year == today.year else f"{shown} {local.year}")


@register.filter
def minute(moment: datetime) -> SafeString:
    """22 Nov 2026, 14:05. In the reader's time zone."""
    local = timezone.localtime(moment)
    return _time(moment, "minute", f"{local.day} {local:%b %Y, %H:%M} UTC")


def _time(moment: datetime, kind: str, text: str) -> SafeString:
    """Return an element whose text static/core/times.js puts into the zone of the browser."""
    at = moment.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" data-local="{}">{}</time>', at, kind, text)


@register.filter
def ago(moment: datetime | None) -> str:
    """just now, 5 minutes ago, 2 hours ago: in the largest unit alone; "" where it never was."""
    if moment is None:
        return ""
    if timezone.now() - moment < timedelta(minutes=1):
        return "just now"
    return f"{timesince(moment, depth=1)} ago"


@register.filter
def milliseconds(value: Measured) -> str:
    return duration(None if value is None or value == "" else value / 1000)


@register.filter
def markdown(text: str) -> SafeString:
    """Sanitised HTML of what a model or a person wrote."""
    return mark_safe(safe_markdown.render(text))  # noqa: S308 - nh3 has the last word in render()


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    """mapping[key], for keys that are data."""
    return mapping.get(key)
