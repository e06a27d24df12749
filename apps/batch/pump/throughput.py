"""How a job went over time, in at most some hundred points (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

BUCKET_SECONDS = 5.0
MOST_POINTS = 240

Point = list[float]
"""[Unix time of its beginning, seconds at work, slots x seconds, rows finished, tokens written]"""


def added(points: Sequence[Point], point: Point) -> list[Point]:
    """The points with one more; when there are too many, each two become one."""
    longer = [*points, point]
    if len(longer) <= MOST_POINTS:
        return longer
    halves = [_joined(*longer[at : at + 2]) for at in range(0, len(longer) - 1, 2)]
    return [*halves, *longer[2 * len(halves) :]]


def _joined(first: Point, second: Point) -> Point:
    return [first[0], *(one + two for one, two in zip(first[1:], second[1:], strict=True))]


@dataclass
class Meter:
    """What the jobs of a pump do between two points, by batch."""

    began: float
    """Unix time."""
    _points: dict[int, Point] = field(default_factory=dict)

    def tick(self, now: float, seconds: float, running: dict[int, int]) -> None:
        """So many seconds passed, with so many rows of each job in flight."""
        for batch_id, rows in running.items():
            point = self._points.setdefault(batch_id, [now - seconds, 0.0, 0.0, 0, 0])
            point[1] += seconds
            point[2] += rows * seconds

    def count(self, batch_id: int, tokens: int) -> None:
        """A row was finished."""
        point = self._points.setdefault(batch_id, [self.began, 0.0, 0.0, 0, 0])
        point[3] += 1
        point[4] += tokens

    def take(self, now: float) -> dict[int, Point]:
        """What has come together since the last time."""
        self.began = now
        points, self._points = self._points, {}
        return {
            batch_id: [round(value, 2) for value in point]
            for batch_id, point in points.items()
            if point[2] or point[3]
        }
