"""Constants of SplitMix64.

Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014, figure 17, with Stafford's
variant 13 of the multipliers.
"""

from __future__ import annotations

import numpy as np

#: 2^64 over the golden ratio: the increment. A product with it spreads numbers over 64 bits.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: Multipliers of the finaliser.
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
