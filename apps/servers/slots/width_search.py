"""Finds how many requests a server answers at once, from the speed of its answers (pure).

Most servers that are not llama.cpp do not report it. The search starts at 4 and grows while the
throughput does. Then it looks for the smallest width that is nearly as fast as the best: more
requests than that only wait at the server. A refusal (429, 503) or answers that become much slower
halve the width.

The throughput is the mean number of requests in flight times the tokens of a request per second.
Counting the answers of a few seconds would say little, because they differ in length.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass

from apps.servers.facts.capacity import START_WIDTH

MAX_WIDTH = 128
STEP_SECONDS = 3.0
STEP_REQUESTS = 6
# A step in which too few requests are in flight measures another width: it starts again.
MAX_STEP_SECONDS = 60.0
FULL_SHARE = 0.85
# Grow on while an added request brings at least this share of what the others bring.
WORTH_SHARE = 0.25
# A width is wide enough with this share of the best throughput.
ENOUGH_SHARE = 0.9
# Widths that differ by less are not told apart.
CLOSE_RATIO = 1.2
# Answers this much slower than after the search: somebody else uses the server.
SLOWER_SHARE = 0.5
# After this the server may have changed.
REPEAT_SECONDS = 600.0

FIRST = "still being measured"
FOUND = "more requests at once were not faster"
LARGEST = "the largest number that is tried"
REFUSED = "it refused more requests at once"
SLOWER = "its answers became slower"


@dataclass(slots=True)
class _Step:
    """What was measured at one width."""

    began: float
    requests: int = 0
    work: float = 0.0
    seconds: float = 0.0
    area: float = 0.0
    """Requests in flight, integrated over time."""


class WidthSearch:
    """The requests for one model, from their start to their end. Times are in seconds."""

    def __init__(self, now: float, width: int = START_WIDTH, *, is_settled: bool = False) -> None:
        self.width = width
        self.reason = FOUND if is_settled else FIRST
        self.is_settled = is_settled
        self._settled_at = now
        self._settled_rate: float | None = None
        """Tokens/s of one request at the settled width."""
        self._ceiling = MAX_WIDTH
        self._grows = True
        self._is_careful = False
        """After a refusal it grows by one."""
        self._rates: dict[int, float] = {}
        """Tokens/s by width."""
        self._started: dict[Hashable, float] = {}
        self._changed_at = self._refused_at = now
        self._step = _Step(now)
        self._to_warm = width
        """Answers until all in flight began at this width."""

    def started(self, request: Hashable, now: float) -> None:
        self._pass_time(now)
        self._started[request] = now

    def dropped(self, request: Hashable, now: float) -> None:
        """Forget a request that failed or was closed."""
        self._pass_time(now)
        self._started.pop(request, None)

    def finished(self, request: Hashable, work: float, now: float) -> bool:
        """Count an answer. Returns True if the width has changed or is settled now.

        Args:
            work: its length, in any unit: tokens or characters.
        """
        self._pass_time(now)
        started = self._started.pop(request, None)
        if self._to_warm > 0:
            self._to_warm -= 1
            self._step = _Step(now)
            return False
        step = self._step
        if started is not None and started >= step.began:
            step.requests += 1
            step.work += work
            step.seconds += now - started
        elif len(self._started) >= self.width:
            self._step = _Step(now)  # those of a wider step are still in flight
            return False
        return self._end_step(now)

    def refused(self, now: float) -> bool:
        """Halve the width. Refusals of the same moment count once. Returns True if it changed."""
        if now - self._refused_at < STEP_SECONDS and self._is_careful:
            return False
        self._refused_at, self._ceiling = now, max(1, self.width - 1)
        self._restart(max(1, self.width // 2), REFUSED, now, is_careful=True)
        return True

    def pause(self, now: float) -> None:
        """Measure again: nothing was sent for a while."""
        self._started.clear()
        self._warm_up(now)

    # --- Steps ---------------------------------------------------------------

    def _pass_time(self, now: float) -> None:
        self._step.area += len(self._started) * (now - self._changed_at)
        self._changed_at = now

    def _begin_step(self, now: float) -> None:
        self._step, self._changed_at = _Step(now), now

    def _warm_up(self, now: float) -> None:
        """Begin a step with the first request that begins when this width is in flight."""
        self._to_warm = self.width
        self._begin_step(now)

    def _end_step(self, now: float) -> bool:
        step = self._step
        elapsed = now - step.began
        if elapsed < STEP_SECONDS or step.requests < max(STEP_REQUESTS, self.width):
            return False
        in_flight = step.area / elapsed
        is_full = in_flight >= FULL_SHARE * self.width
        if not is_full and elapsed < MAX_STEP_SECONDS:
            return False
        self._begin_step(now)
        if not is_full or not step.work or not step.seconds:
            return False
        width = self.width
        has_changed = self._learn(in_flight * step.work / step.seconds, now)
        if self.width != width:
            self._warm_up(now)
        return has_changed

    def _learn(self, rate: float, now: float) -> bool:
        """Decide about the next width, after `rate` was measured at this one."""
        if self.is_settled:
            return self._watch(rate, now)
        self._rates[self.width] = rate
        if self._grows and self._is_worth_it() and (wider := self._wider()) > self.width:
            self.width = wider
            return True
        self._grows = False
        enough, between = self._enough()
        if between is None:
            self._conclude(enough, now)
        else:
            self.width = between
        return True

    def _watch(self, rate: float, now: float) -> bool:
        each = rate / self.width
        self._settled_rate = self._settled_rate or each
        if each < SLOWER_SHARE * self._settled_rate and self.width > 1:
            self._restart(max(1, self.width // 2), SLOWER, now)
            return True
        if now - self._settled_at >= REPEAT_SECONDS:
            self._ceiling = MAX_WIDTH
            self._restart(self.width, self.reason, now)
        return False

    def _restart(self, width: int, reason: str, now: float, *, is_careful: bool = False) -> None:
        self.width, self.reason, self._is_careful = width, reason, is_careful
        self.is_settled, self._grows, self._rates = False, True, {}
        self._warm_up(now)

    def _conclude(self, width: int, now: float) -> None:
        if self.reason == FIRST or not self._is_careful:
            self.reason = LARGEST if width == MAX_WIDTH else FOUND
        self._settled_rate = self._rates[width] / width
        self.width, self.is_settled, self._settled_at = width, True, now

    # --- Widths --------------------------------------------------------------

    def _wider(self) -> int:
        wider = self.width + (1 if self._is_careful else max(1, self.width // 2))
        return min(wider, self._ceiling)

    def _is_worth_it(self) -> bool:
        """True if the last growth has paid off, or there was none yet."""
        narrower = max((width for width in self._rates if width < self.width), default=None)
        if narrower is None:
            return True
        gain = self._rates[self.width] / self._rates[narrower] - 1
        return gain >= WORTH_SHARE * (self.width / narrower - 1)

    def _enough(self) -> tuple[int, int | None]:
        """Return the smallest width known to be fast enough, and one to measure below it."""
        best = max(self._rates.values())
        enough = min(width for width, rate in self._rates.items() if rate >= ENOUGH_SHARE * best)
        slower = max((width for width in self._rates if width < enough), default=0)
        if enough - slower <= 1 or (slower and enough / slower <= CLOSE_RATIO):
            return enough, None
        # Where requests wait for each other, as many are at work as the fastest one fits into all.
        fastest = max(rate / width for width, rate in self._rates.items())
        guess = math.ceil(best / fastest - 0.1)
        return enough, guess if slower < guess < enough else (slower + enough) // 2
