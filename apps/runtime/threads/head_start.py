"""A head start of the event loop before a thread that works for the same request.

Buys: 1.4 of the 7.5 ms that a question adds to its first token, and 6 of 24 with 8 at once. One
thread at a time runs Python: beside a thread that saves, each step of the loop on the way to the
model server waits for its turn of the interpreter.
"""

import threading

# Sending takes 2 ms. What takes longer waits for something, and the thread can work meanwhile.
SECONDS = 0.01


class HeadStart:
    """A thread waits here until the loop has done what comes first.

    head_start = HeadStart()
    loop.call_soon_threadsafe(send, head_start.end)
    head_start.wait()
    """

    def __init__(self) -> None:
        self._ended = threading.Event()

    def end(self) -> None:
        """Let the thread go on. In the loop."""
        self._ended.set()

    def wait(self) -> None:
        """Return when it has ended, or after SECONDS. In the thread."""
        self._ended.wait(SECONDS)
