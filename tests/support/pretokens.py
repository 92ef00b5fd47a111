"""Counts of pretokens, as trainers of tokenizers take them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from finpile_tokenizer import PretokenCounts


def counts_of(frequencies: Mapping[bytes, int]) -> PretokenCounts:
    pretokens = sorted(frequencies)
    return PretokenCounts(
        pretokens=pa.array(pretokens, pa.large_binary()),
        frequencies=np.array([frequencies[pretoken] for pretoken in pretokens], np.int64),
    )
