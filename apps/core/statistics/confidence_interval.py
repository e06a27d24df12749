"""Intervals of shares, 95 %. Pure."""

import math

Z = 1.959964


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, also near 0 and 1 and for few rows (Wilson, 1927)."""
    share, square = right / total, Z**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    spread = math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    half = Z * spread / (1 + square / total)
    return max(0.0, middle - half), min(1.0, middle + half)
