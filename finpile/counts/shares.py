"""Shares with 95% intervals.

Source: Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927). The correction of
a sample without replacement, as an effective size: Kish, Survey Sampling (1965), section 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist

#: Of the normal distribution, for 95%.
Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its interval."""

    value: float
    low: float
    high: float


def wilson(share: float, size: float, population: float = inf) -> Share:
    """Wilson's 95% interval of a share in a sample of `size` that is drawn from `population` without replacement.

    >>> share = wilson(0.5, 10)
    >>> round(share.low, 4), round(share.high, 4)
    (0.2366, 0.7634)
    >>> wilson(0.75, 4, 4)
    Share(value=0.75, low=0.75, high=0.75)
    """
    if size >= population:
        return Share(share, share, share)
    effective = size if population == inf else size * (population - 1) / (population - size)
    middle = share + Z * Z / (2 * effective)
    half = Z * sqrt(share * (1 - share) / effective + (Z / (2 * effective)) ** 2)
    scale = 1 + Z * Z / effective
    low, high = max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
    return Share(share, min(share, low), max(share, high))  # at shares of 0 and 1, rounding may pass them
