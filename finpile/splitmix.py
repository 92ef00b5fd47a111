"""SplitMix64: its constants, its mixing function, and its numbers.

Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014, figure 17, with Stafford's
variant 13 of the multipliers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: 2^64 over the golden ratio: the increment. A product with it spreads numbers over 64 bits.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: Multipliers of the finaliser.
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


def mix(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser: a bijection of 64-bit words in which every input bit affects every output bit.

    Kernels compile it for single words.
    """
    words = (words ^ (words >> np.uint64(30))) * MIX_1
    words = (words ^ (words >> np.uint64(27))) * MIX_2
    return words ^ (words >> np.uint64(31))


def outputs(num: int, seed: int) -> npt.NDArray[np.uint64]:
    """The first numbers of the generator for a seed."""
    return mix(np.arange(1, num + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed))
