"""Curves of a sweep as shapes for an SVG: pixels of a box of WIDTH x HEIGHT (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.tuning.sweep.results import SweepResults

WIDTH, HEIGHT = 400, 200
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 14, 26
STEPS = 4
# 1, 2 or 5 times a power of ten.
NICE = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One run in a curve. `kind`: which of the page's colours it has."""

    kind: str
    name: str
    points: str
    dots: list[tuple[float, float, str]]


@dataclass(frozen=True, slots=True)
class Curve:
    """One figure by the number of sequences."""

    title: str
    summary: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    knee: Tick | None = None
    box: str = field(default=f"0 0 {WIDTH} {HEIGHT}")
    right: int = WIDTH - RIGHT
    left: int = LEFT
    bottom: int = HEIGHT - BOTTOM
    top: int = TOP


def make_curves(shown: Sequence[SweepResults]) -> list[Curve]:
    """Return the curves of one run, or of two to compare; none before something was measured."""
    total = _curve(
        "Tokens/s of all sequences",
        _named(shown, "generation_rate"),
        knee=shown[0].knee if shown else None,
    )
    each = _curve("Tokens/s of each sequence", _named(shown, "per_sequence"))
    first = _curve(
        "Time to the first token, ms",
        [
            (kind + suffix, f"{name}{label}", {at: value * 1000 for at, value in values.items()})
            for suffix, label, figure in (
                ("", "median", "first_token_p50"),
                ("-late", "95th percentile", "first_token_p95"),
            )
            for kind, name, values in _named(shown, figure)
        ],
    )
    return [curve for curve in (total, each, first) if curve is not None]


Named = tuple[str, str, dict[int, float]]


def _named(shown: Sequence[SweepResults], figure: str) -> list[Named]:
    names = ("first run", "second run") if len(shown) > 1 else ("",)
    found = []
    for number, (name, results) in enumerate(zip(names, shown, strict=False), 1):
        separator = ": " if name and figure.startswith("first") else ""
        found.append((f"{number}", name + separator, results.curve(figure)))
    return [one for one in found if one[2]]


def _curve(title: str, named: Sequence[Named], knee: int | None = None) -> Curve | None:
    widths = sorted({width for _, _, values in named for width in values})
    if not widths:
        return None
    top = _nice_top(max(value for _, _, values in named for value in values.values()))

    def x(width: int) -> float:
        span = WIDTH - LEFT - RIGHT
        return round(LEFT + span * (widths.index(width) + 0.5) / len(widths), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top, 1)

    lines = [
        Line(
            kind,
            name,
            " ".join(f"{x(width)},{y(values[width])}" for width in sorted(values)),
            [
                (x(width), y(values[width]), f"{width}: {_label(values[width])}")
                for width in sorted(values)
            ],
        )
        for kind, name, values in named
    ]
    spoken = "; ".join(
        f"{name} ".lstrip()
        + ", ".join(f"{width}: {_label(values[width])}" for width in sorted(values))
        for _, name, values in named
    )
    return Curve(
        title,
        f"{title} by the number of sequences. {spoken}",
        lines,
        [Tick(x(width), str(width)) for width in widths],
        [Tick(y(top * step / STEPS), _label(top * step / STEPS)) for step in range(STEPS + 1)],
        Tick(x(knee), f"knee: {knee}") if knee in widths else None,
    )


def _nice_top(most: float) -> float:
    """The end of an axis: a round number that is not less."""
    if most <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= most:
        power *= 10
    while power > most:
        power /= 10
    return next(power * nice for nice in NICE if power * nice >= most)


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.3g}"
