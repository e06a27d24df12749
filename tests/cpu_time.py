"""CPU time of this thread: what a text or a file costs, whatever else the machine does.

The time of the whole process would count other threads, and a collection of garbage walks all that
earlier tests have left: neither is the work that is measured.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GROWTH = 4
# Of a linear function; a quadratic one takes 16 times as long. What is faster than the floor at the
# larger size would have to grow a hundredfold before anybody met it.
MOST_RATIO = 9.0
FLOOR_SECONDS = 0.02
TRIES = 6
# What runs away takes minutes, what does not takes milliseconds.
BOUND_SECONDS = 10.0


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that `work` took in this thread."""
    with _no_garbage_collection():
        began = time.thread_time()
        work()
        return time.thread_time() - began


@contextmanager
def bounded_cpu(seconds: float = BOUND_SECONDS) -> Iterator[None]:
    """Check that the block took less than `seconds` of CPU in this thread.

    Raises:
        AssertionError: It took more.
    """
    with _no_garbage_collection():
        began = time.thread_time()
        yield
        took = time.thread_time() - began
    assert took < seconds, f"{took:.1f} s of CPU"


def growth_problem(short: Callable[[], object], long: Callable[[], object]) -> str:
    """Compare a piece of work with the same on `GROWTH` times as much; "" where it is linear.

    Each is tried up to `TRIES` times and its fastest run counts.
    """
    takes: list[float] = []
    took: list[float] = []
    for _ in range(TRIES):
        takes.append(cpu_seconds(long))
        took.append(cpu_seconds(short))
        if min(takes) < max(FLOOR_SECONDS, MOST_RATIO * min(took)):
            return ""
    return f"{min(took):.3f} s, {GROWTH} times as much {min(takes):.3f} s"
