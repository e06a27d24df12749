"""A time limit for what is waited for with every token of every answer.

Buys: a tenth of the CPU of a streamed token. `asyncio.timeout` does the same with a coroutine at
both ends of its block, and can be moved while it runs.
"""

import asyncio
from types import TracebackType


class time_limit:  # lower case, as it is used
    """Raise TimeoutError in the block, which waits for something, after so many seconds.

    with time_limit(65):
        await ...

    Who else cancels the task meanwhile is heard: that stays a CancelledError.
    """

    __slots__ = ("_cancelled_before", "_has_expired", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._has_expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._cancelled_before = task, task.cancelling()
        self._timer = task.get_loop().call_later(self._seconds, self._expire)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._has_expired:
            is_ours = self._task.uncancel() <= self._cancelled_before
            if is_ours and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _expire(self) -> None:
        self._has_expired = True
        self._task.cancel()
