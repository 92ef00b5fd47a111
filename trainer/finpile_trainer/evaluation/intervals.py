"""Intervals of 95% for accuracies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from finpile.counts import shares
from finpile.counts.shares import Z

#: Resamplings of a bootstrap.
NUM_RESAMPLINGS = 1_000

Interval = tuple[float, float]


def wilson(num_right: int, num_items: int) -> Interval:
    """Wilson's interval of a share.

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    if not num_items:
        return 0.0, 1.0
    share = shares.wilson(num_right / num_items, num_items)
    return share.low, share.high


def of_mean(counts: Sequence[tuple[int, int]]) -> Interval:
    """The interval of the mean of several shares, (right, items) of each: that of a normal distribution.

    Items are independent; a share of 0 or 1 has the variance of Wilson's middle, so that the interval has no width of
    0.
    """
    variance = 0.0
    for num_right, num_items in counts:
        share = (num_right + Z**2 / 2) / (num_items + Z**2)
        variance += share * (1 - share) / num_items
    mean = sum(num_right / num_items for num_right, num_items in counts) / len(counts)
    half = Z * math.sqrt(variance) / len(counts)
    return max(0.0, mean - half), min(1.0, mean + half)


def bootstrap(score_of: Callable[[npt.NDArray[np.int64]], float], size: int) -> Interval:
    """The interval of a score of `size` examples: of the scores of as many, drawn with replacement, the middle 95%."""
    from scipy.stats import bootstrap as resample

    examples = np.arange(size)
    if size < 2:  # no draw differs
        return score_of(examples), score_of(examples)
    found = resample((examples,), score_of, n_resamples=NUM_RESAMPLINGS, vectorized=False, method="percentile", rng=0)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
