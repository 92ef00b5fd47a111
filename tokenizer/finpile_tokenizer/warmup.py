"""Compiles every kernel once, so that the first real call does not wait for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile_tokenizer.counts import count_pretokens
from finpile_tokenizer.merge import MIN_VOCAB_SIZE, merge, prune_to
from finpile_tokenizer.model import UnigramTokenizer
from finpile_tokenizer.pretokenizer import pretokenize
from finpile_tokenizer.unigram import UnigramModel


def compile_kernels() -> None:
    """Runs each kernel on a few bytes, which compiles it and fills Numba's cache on disk.

    Call it once before worker processes start, and when an image is built; there, set NUMBA_CPU_NAME and
    NUMBA_CACHE_DIR to what the workers will have: the cache is keyed by the one and found by the other.
    """
    text = pa.array([b"a1"], pa.large_binary())
    pretokenize(b"a1")
    count_pretokens(text).merge([])
    model = UnigramModel(
        pieces=pa.array([b"a"], pa.large_binary()), log_probs=np.zeros(1), num_models=np.ones(1, np.int64), num_bytes=1
    )
    UnigramTokenizer(prune_to(merge([model]), MIN_VOCAB_SIZE)).encode_array(text)
