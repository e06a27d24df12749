"""Requests as a job sends them: each slot begins the next as soon as one has ended."""

import asyncio
import statistics
import time

from apps.llm.client import Message
from apps.llm.permits import Permit
from apps.tuning.sweep.best_width import Rate
from apps.tuning.sweep.figures import Timing, tokens_per_piece
from apps.tuning.sweep.measuring.slots import IdleSlots, Work
from apps.tuning.sweep.measuring.stream import ask, build_request
from apps.tuning.sweep.prompts import cached_prompt

SLICE_SECONDS = 0.25
LEAST_SECONDS = 1.5
MOST_SECONDS = 4.0
LEAST_TOKENS = 16  # of each sequence
PRECISE_ENOUGH = 0.01  # standard error, as a share


class JobProbe:
    """Measures the tokens/s of one number of sequences."""

    def __init__(self, slots: IdleSlots, prompt_characters: int, answer_tokens: int) -> None:
        self._slots = slots
        self._characters = prompt_characters
        self._answer_tokens = answer_tokens

    async def measure(self, width: int, tokens: int, seconds: float | None = None) -> Rate:
        """Return the rate of all sequences together, from when each has begun to generate.

        Args:
            width: sequences at the same time.
            tokens: the most that each request may come to.
            seconds: to measure; None: until the rate is precise.

        Raises:
            InUse, LLMError: see `IdleSlots.run`.
        """
        window = _Window(width, seconds)
        works = [self._worker(window, number, width) for number in range(width)]
        await self._slots.run(works, tokens, window.wait)
        return window.rate()

    def _worker(self, window: "_Window", number: int, width: int) -> Work[None]:
        async def work(held: Permit) -> None:
            # Answers of rows do not end together: the first ones are of different lengths.
            length = max(1, round(self._answer_tokens * (number + 1) / width))
            while True:
                message: Message = {"role": "user", "content": cached_prompt(self._characters)}
                request = build_request(self._slots.target, [message], length)
                answer = await ask(self._slots.target, request, window.arrivals[number])
                window.timings.append(answer.timing)
                if answer.usage is not None:
                    held.record_usage(answer.usage)
                length = self._answer_tokens

        return work


class _Window:
    """The time in which all sequences generate."""

    def __init__(self, width: int, seconds: float | None) -> None:
        self.arrivals: list[list[float]] = [[] for _ in range(width)]
        self.timings: list[Timing] = []
        self._seconds = seconds

    async def wait(self) -> None:
        """Wait until the rate is known well enough."""
        while not self._is_enough():  # noqa: ASYNC110
            await asyncio.sleep(SLICE_SECONDS)

    def rate(self) -> Rate:
        slices = self._slices()
        value = statistics.fmean(slices) * tokens_per_piece(self.timings)
        error = statistics.stdev(slices) / len(slices) ** 0.5 if len(slices) > 1 else 0.0
        return Rate(value, error / statistics.fmean(slices) * value if value else 0.0)

    def _is_enough(self) -> bool:
        if not all(self.arrivals):
            return False
        seconds = time.perf_counter() - self._begins
        if self._seconds is not None or seconds >= MOST_SECONDS:
            return seconds >= (self._seconds or MOST_SECONDS)
        tokens = sum(map(len, self.arrivals))
        if seconds < LEAST_SECONDS or tokens < LEAST_TOKENS * len(self.arrivals):
            return False
        rate = self.rate()
        return rate.error <= PRECISE_ENOUGH * rate.value

    @property
    def _begins(self) -> float:
        return max(arrivals[0] for arrivals in self.arrivals)

    def _slices(self) -> list[float]:
        """Pieces per second in equal parts of the window."""
        begins = self._begins
        inside = sorted(at - begins for one in self.arrivals for at in one if at > begins)
        if not inside:
            return [0.0]
        count = max(1, int(inside[-1] / SLICE_SECONDS))
        length = inside[-1] / count
        slices = [0] * count
        for at in inside:
            slices[min(count - 1, int(at / length))] += 1
        return [pieces / length for pieces in slices]
