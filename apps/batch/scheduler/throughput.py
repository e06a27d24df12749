"""Throughput of a job over time, in a bounded number of points (pure)."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

MAX_POINTS = 240
# Points of two servers that begin this close are one: half the time of a point.
SAME_INTERVAL_SECONDS = 2.5

PointJson = list[float]
"""[start, busy seconds, slot seconds, rows, tokens] as stored and as the chart reads it."""


@dataclass(slots=True)
class Point:
    """Work of one job in one interval."""

    start: float
    """Unix time."""
    busy_seconds: float = 0.0
    slot_seconds: float = 0.0
    """Slots in use times seconds."""
    rows: float = 0
    tokens: float = 0
    """Output tokens."""

    @classmethod
    def from_json(cls, values: PointJson) -> "Point":
        return cls(*values)

    def to_json(self) -> PointJson:
        return [round(value, 2) for value in astuple(self)]

    def combined_with(self, other: "Point") -> "Point":
        """Return the work of two servers in one interval."""
        return Point(
            self.start,
            max(self.busy_seconds, other.busy_seconds),
            self.slot_seconds + other.slot_seconds,
            self.rows + other.rows,
            self.tokens + other.tokens,
        )

    def joined_with(self, later: "Point") -> "Point":
        return Point(
            self.start,
            self.busy_seconds + later.busy_seconds,
            self.slot_seconds + later.slot_seconds,
            self.rows + later.rows,
            self.tokens + later.tokens,
        )


def append_point(points: Sequence[Point], point: Point) -> list[Point]:
    """Return the points with one more; beyond `MAX_POINTS`, neighbours are joined in pairs.

    The point of another server in the same interval is added to the last one.
    """
    if points and point.start < points[-1].start + SAME_INTERVAL_SECONDS:
        return [*points[:-1], points[-1].combined_with(point)]
    longer = [*points, point]
    if len(longer) <= MAX_POINTS:
        return longer
    pairs = zip(longer[::2], longer[1::2], strict=False)
    joined = [first.joined_with(second) for first, second in pairs]
    return [*joined, *longer[2 * len(joined) :]]
