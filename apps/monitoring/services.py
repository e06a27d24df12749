"""The door of this room: gauges that other rooms have for /metrics."""

from collections.abc import Callable, Iterator

_gauges: dict[str, tuple[str, Callable[[], float]]] = {}


def register_gauge(name: str, text: str, read: Callable[[], float]) -> None:
    """Add a gauge to /metrics.

    Args:
        name: without the prefix “workbench_”.
        read: returns the value now; blocks.
    """
    _gauges[name] = text, read


def read_gauges() -> Iterator[tuple[str, str, float]]:
    """Name, text and value of each gauge."""
    for name, (text, read) in _gauges.items():
        yield name, text, read()
