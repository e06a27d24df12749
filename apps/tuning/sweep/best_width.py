"""Finds the number of sequences at which a server generates most tokens/s, in few probes (pure).

Where a server can be measured at leisure, trying every number is slow and says little more: the
rate mostly rises, and then stays or falls. So the search starts with all slots, halves their number
while that costs little, and then looks between the neighbours of the best, except where the curve,
if it bends one way only, cannot be higher. Kernels of llama.cpp prefer numbers that 4 divides.
Close rates are measured twice.
"""

import math
import statistics
from dataclasses import dataclass, field

MOST_PROBES = 9
# Half as many sequences are tried on while they reach this share of the best rate.
GOES_ON_SHARE = 0.95
# A gap between two widths is small enough to leave alone.
CLOSE_RATIO = 1.2
# Rates are told apart from this difference on, whatever their noise.
TOLD_APART = 0.01
# The bound of a bent curve must promise this much for a probe.
PROMISING = 1.02
KERNEL_STEP = 4


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens/s with its standard error."""

    value: float
    error: float = 0.0


@dataclass(slots=True)
class BestWidthSearch:
    """Ask `next_width`, measure it, `learn` the rate, until there is none."""

    slots: int
    probes: dict[int, list[Rate]] = field(default_factory=dict)

    @property
    def rates(self) -> dict[int, float]:
        """Tokens/s by width, ascending."""
        return {
            width: statistics.fmean(rate.value for rate in self.probes[width])
            for width in sorted(self.probes)
        }

    @property
    def best(self) -> int | None:
        """The narrowest width whose rate cannot be told from the highest; None before a probe."""
        rates = self.rates
        if not rates:
            return None
        enough = max(rates.values()) * (1 - TOLD_APART)
        return min(width for width, rate in rates.items() if rate >= enough)

    def learn(self, width: int, rate: Rate) -> None:
        self.probes.setdefault(width, []).append(rate)

    def next_width(self) -> int | None:
        """Return the width to measure next; None if the search is over."""
        if not self.probes:
            return self.slots
        if sum(len(rates) for rates in self.probes.values()) >= MOST_PROBES:
            return None
        rates = self.rates
        narrowest = min(rates)
        if narrowest > 1 and rates[narrowest] >= GOES_ON_SHARE * max(rates.values()):
            return narrowest // 2
        if narrowest == self.slots > 1:
            return narrowest // 2
        return self._between() or self._to_repeat()

    def _between(self) -> int | None:
        """A width next to the best that may be better, the more promising first."""
        rates = self.rates
        known = sorted(rates)
        place = known.index(max(rates, key=lambda width: rates[width]))
        gaps = [known[place + side : place + side + 2] for side in (0, -1) if place + side >= 0]
        promising = [
            (bound, middle)
            for gap in gaps
            if len(gap) == 2
            and gap[1] / gap[0] > CLOSE_RATIO
            and (middle := _middle(*gap)) is not None
            and (bound := _bound(rates, gap, middle)) >= PROMISING * max(rates.values())
        ]
        return max(promising)[1] if promising else None

    def _to_repeat(self) -> int | None:
        """A width that was probed once, and may be the best by its noise."""
        rates = self.rates
        best = max(rates, key=lambda width: rates[width])
        for width in sorted(rates, key=lambda width: -rates[width])[:3]:
            difference = 1 - rates[width] / rates[best]
            noise = 2 * max(self._noise(width), self._noise(best))
            if len(self.probes[width]) == 1 and TOLD_APART / 2 < noise > difference:
                return width
        return None

    def _noise(self, width: int) -> float:
        """The standard error as a share of the rate."""
        found = self.probes[width]
        return max(rate.error / rate.value for rate in found) / math.sqrt(len(found))


def _middle(low: int, high: int) -> int | None:
    """A width between two, which 4 divides if there is one; None if they are neighbours."""
    middle = (low + high) // 2
    stepped = round(middle / KERNEL_STEP) * KERNEL_STEP
    if low < stepped < high:
        return stepped
    return middle if low < middle < high else None


def _bound(rates: dict[int, float], gap: list[int], middle: int) -> float:
    """The most that a curve which bends one way only has at `middle`, inside `gap`.

    It lies below the line through the two points on its left, and below that on its right.
    """
    known, (low, high) = sorted(rates), gap
    bounds = [_line(rates, known[at - 1], low, middle) for at in [known.index(low)] if at > 0]
    at_high = known.index(high)
    if at_high + 1 < len(known):
        bounds.append(_line(rates, high, known[at_high + 1], middle))
    # A line through the origin: twice the sequences bring twice the rate at most.
    bounds.append(rates[low] * middle / low)
    return min(bounds)


def _line(rates: dict[int, float], one: int, other: int, at: int) -> float:
    slope = (rates[other] - rates[one]) / (other - one)
    return rates[one] + slope * (at - one)
