"""Compiles every kernel once, so that the first real call does not wait for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile_tokenizer.merge import MIN_VOCAB_SIZE, merge, prune_to
from finpile_tokenizer.model import UnigramModel
from finpile_tokenizer.pretokens.counts import count_pretokens
from finpile_tokenizer.pretokens.pretokenizer import pretokenize
from finpile_tokenizer.segmentations.nbest import MIN_BLOCK_BYTES
from finpile_tokenizer.tokenizer import UnigramTokenizer
from finpile_tokenizer.trainer import UnigramTrainer
from finpile_tokenizer.training.lattice import find_lattices


def compile_kernels() -> None:
    """Runs each kernel on a few bytes, which compiles it and fills Numba's cache on disk.

    Call it once before worker processes start, and when an image is built; there, set NUMBA_CPU_NAME and
    NUMBA_CACHE_DIR to what the workers will have: the cache is keyed by the one and found by the other.
    """
    text = pa.array([b"a1"], pa.large_binary())
    pretokenize(b"a1")
    count_pretokens(text).merge([])
    model = UnigramModel(
        pieces=pa.array([b"a", b"aa"], pa.large_binary()),
        log_probs=np.log([0.5, 0.5]),
        num_models=np.ones(2, np.int64),
        num_bytes=1,
    )
    tokenizer = UnigramTokenizer(prune_to(merge([model]), MIN_VOCAB_SIZE + 1))
    tokenizer.encode_array(text)
    tokenizer.encode_with_offsets(b"a1", "characters")
    tokenizer.encode_nbest(b"a" * (MIN_BLOCK_BYTES + 1), 2)
    tokenizer.sample_array(text, seed=0)
    tokenizer.sample_without_replacement(b"a1", 1, seed=0)
    tokenizer.log_likelihood(text)
    counts = count_pretokens(pa.array([b"ab" * 9, b"abc", b"bca"], pa.large_binary()))
    find_lattices(counts, UnigramTrainer(vocab_size=3).train(counts).pieces)
