"""Line charts as SVG, drawn by `templates/monitoring/_chart.html`. Pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NOT_REPORTED = "not reported"
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


def number_text(value: float | None) -> str:
    if value is None:
        return NOT_REPORTED
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def line_chart(
    title: str,
    series: Sequence[tuple[str, Sequence[float | None]]],
    whole: str,
    text: Callable[[float | None], str],
    limit: float | None = None,
) -> Chart:
    """Return a chart of some lines, each with its name.

    Args:
        whole: the value over the whole time.
        limit: the upper edge; None: by the values.
    """
    known = [value for _, values in series for value in values if value is not None]
    if not known:
        return Chart(title, NOT_REPORTED, "", "", [])
    top = limit or round_up(max(known))
    lines = [
        Line(name, number, polylines(values, top))
        for number, (name, values) in enumerate(series, start=1)
    ]
    return Chart(title, whole, text(max(known)), text(top), lines)


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
