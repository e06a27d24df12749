"""A process that is let run for a tenth of the time only."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

RUNS = 0.01  # seconds at a time
RESTS = 9  # times as long as it ran


@contextmanager
def slowed(send: Callable[[signal.Signals], object]) -> Iterator[None]:
    """Let it run for a tenth of the time, so that its answers outlast what a test does to them.

    A tiny model writes thousands of tokens in a second, which a busy machine takes to notice the
    first one. However late this hears that its turn is over: it rests nine times as long.

    Args:
        send: gives it a signal; fails with ProcessLookupError once it has ended.
    """
    over = threading.Event()

    def slow() -> None:
        with suppress(ProcessLookupError):  # killed meanwhile
            while True:
                began = time.monotonic()
                if over.wait(RUNS):
                    return
                send(signal.SIGSTOP)
                over.wait(RESTS * (time.monotonic() - began))
                send(signal.SIGCONT)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
