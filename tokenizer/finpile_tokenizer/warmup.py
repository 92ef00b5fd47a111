"""Compiles kernels into Numba's cache on disk, in groups by purpose.

Numba compiles under a lock, so only several processes use several cores. The groups do not depend on each other: each
can be compiled in a process of its own, and a kernel that two of them need is short. A group calls its kernels on
arrays of the right types with next to no elements.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import byte_buffers
from finpile_tokenizer.encoding.automaton import Automaton, automaton_of_trie
from finpile_tokenizer.merging import MIN_VOCAB_SIZE, merge, prune_to
from finpile_tokenizer.model import UnigramModel
from finpile_tokenizer.pretokens.counts import PretokenCounts, count_pretokens
from finpile_tokenizer.pretokens.pretokenizer import pretokenize
from finpile_tokenizer.pretokens.segments import cut_texts
from finpile_tokenizer.segmentations.nbest import MIN_BLOCK_BYTES
from finpile_tokenizer.tokenizer import UnigramTokenizer
from finpile_tokenizer.training import em, prune
from finpile_tokenizer.training.lattice import NO_PIECE, Lattices, find_lattices, packed_links
from finpile_tokenizer.training.seed import find_seeds
from finpile_tokenizer.trie.double_array import Trie, build_trie

#: Groups as `module:function`, the longest compilation first in each tuple.
TRAINING_GROUPS = (
    "finpile_tokenizer.warmup:compile_seeds",
    "finpile_tokenizer.warmup:compile_expectation",
    "finpile_tokenizer.warmup:compile_counting",
)
ENCODING_GROUPS = (
    "finpile_tokenizer.warmup:compile_encoder",
    "finpile_tokenizer.warmup:compile_trie",
    "finpile_tokenizer.warmup:compile_automaton",
)
#: Everything that training, merging and encoding call.
KERNEL_GROUPS = (*TRAINING_GROUPS, *ENCODING_GROUPS)

_BYTES = pa.array([bytes([value]) for value in range(256)], pa.large_binary())


def compile_counting() -> None:
    """The kernels that cut texts, count pretokens and merge models."""
    cut_texts(pa.array([b"a1"], pa.large_binary()), 1)
    count_pretokens(pa.array([b"a1"], pa.large_binary())).merge([])
    merge([_model()])


def compile_seeds() -> None:
    """The kernels that find seeds."""
    pretokens = pa.array([b"ab", b"abc"], pa.large_binary())
    find_seeds(PretokenCounts(pretokens=pretokens, frequencies=np.ones(2, np.int64)), max_piece_bytes=2, seed_size=1)


def compile_expectation() -> None:
    """The kernels of expectation and pruning, on the lattice of one byte."""
    log_probs = np.zeros(1)
    lattices = Lattices(
        offsets=np.array([0, 1], np.int64),
        frequencies=np.ones(1, np.int64),
        longest_piece_at=np.zeros(1, np.int32),
        prefix_links=packed_links(np.full(1, NO_PIECE, np.int32), np.ones(1, np.int32)),
    )
    em.expectation(lattices, log_probs, scale=1.0)
    counts = prune.best_path_counts(lattices, log_probs)
    prune.removal_losses(lattices, np.zeros(1, np.int64), log_probs, counts)
    lattices.take(np.zeros(1, np.int64))


def compile_trie() -> None:
    """The kernels that build the double array of the encoder's pieces."""
    build_trie(_BYTES)


def compile_automaton() -> None:
    """The kernels that build the encoder's automaton, on the trie of the 256 bytes."""
    values = np.arange(256, dtype=np.int32)
    trie = Trie(
        parents=np.zeros(257, np.int32),
        labels=np.append(np.uint8(0), values.astype(np.uint8)),
        depths=np.append(np.int32(0), np.ones(256, np.int32)),
        pieces=np.append(np.int32(-1), values),
        slots=np.append(np.int32(256), values),
        bases=np.append(np.int32(0), np.full(256, 256, np.int32)),
        num_slots=512,
    )
    automaton_of_trie(trie, np.ones(256, np.int64), np.zeros(256))


def compile_encoder() -> None:
    """The kernel that encodes, on no text."""
    automaton = Automaton(
        units=np.zeros(512, np.uint64),
        firsts=np.zeros(512, np.uint32),
        choices=np.zeros(2),
        byte_scores=np.zeros(256),
        longest=1,
    )
    automaton.encode(*byte_buffers(pa.array([], pa.large_binary())), 0, 0)


def compile_segmentations() -> None:
    """The kernels of n-best lists, samples, likelihood and offsets, with those of training and encoding they need."""
    text = pa.array([b"a1"], pa.large_binary())
    tokenizer = UnigramTokenizer(prune_to(merge([_model()]), MIN_VOCAB_SIZE + 1))
    tokenizer.encode_with_offsets(b"a1", "characters")
    tokenizer.encode_nbest(b"a" * (MIN_BLOCK_BYTES + 1), 2)
    tokenizer.sample_array(text, seed=0)
    tokenizer.sample_without_replacement(b"a1", 1, seed=0)
    tokenizer.log_likelihood(text)
    pretokenize(b"a1")


def compile_lattices() -> None:
    """The kernels that find the lattices of pretokens over any pieces, which training across machines needs."""
    find_lattices(count_pretokens(pa.array([b"a1"], pa.large_binary())), _BYTES)


def compile_kernels() -> None:
    """Compiles every kernel and fills Numba's cache on disk.

    When an image is built, set NUMBA_CPU_NAME and NUMBA_CACHE_DIR to the values that the workers have: the cache is
    keyed by the first and found by the second.
    """
    compile_counting()
    compile_seeds()
    compile_expectation()
    compile_trie()
    compile_automaton()
    compile_encoder()
    compile_lattices()
    compile_segmentations()


def _model() -> UnigramModel:
    return UnigramModel(
        pieces=pa.array([b"a", b"aa"], pa.large_binary()),
        log_probs=np.log([0.5, 0.5]),
        num_models=np.ones(2, np.int64),
        num_bytes=1,
    )
