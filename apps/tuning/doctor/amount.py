"""A measured value with its unit. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    SECONDS = "s"
    TOKENS = "tokens"
    TOKENS_PER_SECOND = "tokens/s"
    SHARE = "share"
    """0 to 1."""
    NUMBER = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    value: float
    unit: Unit

    @property
    def text(self) -> str:
        """The value as a person reads it."""
        match self.unit:
            case Unit.SECONDS:
                return f"{self.value:.2f} s"
            case Unit.TOKENS:
                return f"{self.value:,.0f} tokens"
            case Unit.TOKENS_PER_SECOND:
                return f"{self.value:,.1f} tokens/s"
            case Unit.SHARE:
                return f"{self.value:.0%}"
            case Unit.NUMBER:
                return f"{self.value:,.3g}"
