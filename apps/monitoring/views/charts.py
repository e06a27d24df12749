"""Line charts of a server's measurements as SVG, and the same numbers as a table. Pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apps.core.templatetags.formats import milliseconds, percent
from apps.monitoring.history.measurement import Measurement, total

NOT_REPORTED = "not reported"
Value = Callable[[Measurement], float | None]
Text = Callable[[float | None], str]
WIDTH, HEIGHT = 1000, 100
"""Of the viewBox: the page stretches it."""


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    number: int
    """Names its colour."""
    pieces: list[str]
    """Points of each polyline: a gap where nothing was measured ends one."""


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    whole: str
    """The value over the whole time."""
    peak: str
    top: str
    """The value at the upper edge; "" without one measurement."""
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Metric:
    title: str
    values: tuple[tuple[str, Value], ...]
    text: Text
    limit: float | None = None
    """The upper edge, where it does not depend on the values."""


def number_text(value: float | None) -> str:
    if value is None:
        return NOT_REPORTED
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _or_not_reported(text: Text) -> Text:
    return lambda value: NOT_REPORTED if value is None else text(value)


_time, _share = _or_not_reported(milliseconds), _or_not_reported(percent)
METRICS = (
    Metric("Generated tokens/s", (("", lambda m: m.completion_per_second),), number_text),
    Metric("Prompt tokens/s", (("", lambda m: m.prompt_per_second),), number_text),
    Metric("Tokens/s of one answer", (("", lambda m: m.speed),), number_text),
    Metric(
        "Time to first token",
        (("median", lambda m: m.first_token_ms(0.5)), ("95%", lambda m: m.first_token_ms(0.95))),
        _time,
    ),
    Metric("Busy slots", (("", lambda m: m.busy_slots),), number_text),
    Metric("Waiting for a slot", (("", lambda m: m.queue),), number_text),
    Metric("Prompt cache hits", (("", lambda m: m.cache_share),), _share, limit=1.0),
    Metric("Errors", (("", lambda m: float(m.failed)),), number_text),
)


def charts(points: Sequence[Measurement | None]) -> list[Chart]:
    """A chart for each metric.

    Args:
        points: one for each step, oldest first; None: no sample.
    """
    whole = total(points)
    return [_chart(metric, points, whole) for metric in METRICS]


def _chart(metric: Metric, points: Sequence[Measurement | None], whole: Measurement) -> Chart:
    series = [
        [None if point is None else value(point) for point in points] for _, value in metric.values
    ]
    known = [value for values in series for value in values if value is not None]
    if not known:
        return Chart(metric.title, NOT_REPORTED, "", "", [])
    top = metric.limit or round_up(max(known))
    overall = [f"{name} {metric.text(value(whole))}".strip() for name, value in metric.values]
    return Chart(
        metric.title,
        ", ".join(overall),
        metric.text(max(known)),
        metric.text(top),
        [
            Line(name, number, polylines(values, top))
            for number, ((name, _), values) in enumerate(
                zip(metric.values, series, strict=True), start=1
            )
        ],
    )


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, ...; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power * (1 + 1e-9))


def polylines(values: Sequence[float | None], top: float) -> list[str]:
    """Points for SVG polylines. One value between two gaps is a short level line."""
    width = WIDTH / max(1, len(values))
    pieces: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(((place + 0.5) * width, HEIGHT * (1 - min(value / top, 1.0))))
    return [
        " ".join(f"{x:.0f},{y:.1f}" for x, y in _drawn(piece, width)) for piece in pieces if piece
    ]


def _drawn(piece: list[tuple[float, float]], width: float) -> list[tuple[float, float]]:
    if len(piece) > 1:
        return piece
    [(x, y)] = piece
    return [(x - max(width / 2, 2), y), (x + max(width / 2, 2), y)]


def columns() -> list[str]:
    return [
        f"{metric.title} ({name})" if name else metric.title
        for metric in METRICS
        for name, _ in metric.values
    ]


def cells(point: Measurement) -> list[str]:
    """The values of one row of the table, in the order of `columns`."""
    return [metric.text(value(point)) for metric in METRICS for _, value in metric.values]
