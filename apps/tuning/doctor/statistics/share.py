"""A share of what was counted, with its interval. Pure."""

from dataclasses import dataclass

from apps.core.statistics.confidence_interval import wilson_interval


@dataclass(frozen=True, slots=True)
class Share:
    """`part` of `whole`, which is not 0."""

    part: int
    whole: int

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.part:,} of {self.whole:,} ({low:.0%} to {high:.0%})"

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval, 95 %: also near 0 and 1, and for few."""
        return wilson_interval(self.part, self.whole)
