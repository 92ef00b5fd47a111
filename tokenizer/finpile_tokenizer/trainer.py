"""Trains Unigram models on counted pretokens.

The algorithm is `UnigramTrainer.models_along`; its steps are functions in the modules of their names:

    seed    the substrings worth a piece's place       seed.find_seeds
    E-step  expected uses of each piece                em.expectation
    M-step  probabilities from them                    em.maximization
    prune   drop the pieces of least likelihood        prune.removal_losses, prune.kept_by_loss
    finish  the most probable pieces, all bytes        finalize

Source: Kudo, "Subword Regularization" (arXiv:1804.10959), section 3.2; the schedule is SentencePiece's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import order_by_bytes
from finpile_tokenizer.errors import EmptyCorpusError, TokenizerError
from finpile_tokenizer.model import UnigramModel, log_normalized
from finpile_tokenizer.pretokens.counts import PretokenCounts
from finpile_tokenizer.training.em import maximization
from finpile_tokenizer.training.prune import kept_by_loss
from finpile_tokenizer.training.seed import LONGEST_PIECE_BYTES, MOST_SEEDS, SEED_SIZE, find_seeds
from finpile_tokenizer.training.state import TrainingState, check_place, load_state, save_state, training_mark
from finpile_tokenizer.training.text import InMemoryText, TrainingText

#: Pieces of a chunk model. Source: BloombergGPT (arXiv:2303.17564), section 2.3.
CHUNK_VOCAB_SIZE = 65_536
#: Measured: docs/decisions/0012.
DEFAULT_MAX_PIECE_BYTES = 32
#: Measured: with fewer seeds a large vocabulary is short of good pieces, with many more its tokens become shorter.
SEEDS_PER_PIECE = 16
#: Updates between two prunings, and the share that a pruning keeps. Source: SentencePiece's defaults.
NUM_SUB_ITERATIONS = 2
SHRINKING_FACTOR = 0.75
#: Pruning stops at this multiple of the pieces wanted; the least probable are then dropped. Source: SentencePiece's
#: trainer.
HEADROOM = 1.1

Listener = Callable[[TrainingState], None]


def _ignore(state: TrainingState) -> None:
    del state


@dataclass(frozen=True, kw_only=True, slots=True)
class UnigramTrainer:
    """How to train: `UnigramTrainer(vocab_size=65_536, num_threads=2).train(count_pretokens(texts))`.

    Same counts and settings, same bytes of the result, for any number of threads.
    """

    vocab_size: int = CHUNK_VOCAB_SIZE
    """Pieces, the bytes that occur among them; fewer if the text is too small."""
    max_piece_bytes: int = DEFAULT_MAX_PIECE_BYTES
    seed_size: int | None = None
    """Substrings to begin with; None: 16 for each piece wanted, and a million at least."""
    num_threads: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.max_piece_bytes <= LONGEST_PIECE_BYTES:
            raise TokenizerError(f"max_piece_bytes is {self.max_piece_bytes}: expected 1 to {LONGEST_PIECE_BYTES}")
        if self.seed_size is not None and not 0 <= self.seed_size <= MOST_SEEDS:
            raise TokenizerError(f"seed_size is {self.seed_size}: expected 0 to {MOST_SEEDS}")
        if self.num_threads < 1:
            raise TokenizerError(f"num_threads is {self.num_threads}: expected 1 or more")

    def train(
        self, counts: PretokenCounts, *, listen: Listener = _ignore, checkpoint: str | Path | None = None
    ) -> UnigramModel:
        """The Unigram model of the counted text; every byte that occurs is a piece.

        `listen` is called with the state after each step. With `checkpoint`, a file, each state is saved there; if it
        holds a state of the same training, training continues from it, with the same result. The caller removes it.

        Raises:
            EmptyCorpusError: nothing was counted.
            TokenizerError: `vocab_size` has no room for the bytes that occur, or the checkpoint cannot be kept, is
                damaged or is of another training.
        """
        if checkpoint is not None:
            check_place(checkpoint)
        text, state = self._begin(counts, [self.vocab_size])
        if checkpoint is not None:
            mark = training_mark(counts, self.vocab_size, self.max_piece_bytes, self.num_seeds([self.vocab_size]))
            state = load_state(checkpoint, mark, state)
            listen = _saving(checkpoint, mark, listen)
        (model,) = self.models_along(text, state, [self.vocab_size], listen)
        return model

    def train_sizes(self, counts: PretokenCounts, sizes: Sequence[int]) -> Iterator[UnigramModel]:
        """Models of several sizes, from the largest to the smallest, along one course of prunings.

        The first is what `train` gives with that `vocab_size`; each of the others continues from the one before.

        Raises: as `train` does.
        """
        return self.models_along(*self._begin(counts, sizes), sizes)

    def num_seeds(self, sizes: Sequence[int]) -> int:
        """Substrings that a training to these sizes begins with."""
        if self.seed_size is not None:
            return self.seed_size
        return min(max(SEED_SIZE, SEEDS_PER_PIECE * max(sizes)), MOST_SEEDS)

    def steps_left(self, state: TrainingState) -> int:
        """Updates and prunings from this state to a model of `vocab_size`, for the progress of a training."""
        num_steps, num_pieces = NUM_SUB_ITERATIONS - state.num_updates, state.num_pieces
        wanted = int(HEADROOM * self.vocab_size)
        while num_pieces > wanted:
            num_pieces = max(wanted, int(SHRINKING_FACTOR * num_pieces))
            num_steps += 1 + NUM_SUB_ITERATIONS
        return num_steps

    def _begin(self, counts: PretokenCounts, sizes: Sequence[int]) -> tuple[InMemoryText, TrainingState]:
        _check(counts, sizes)
        seeds = find_seeds(
            counts,
            max_piece_bytes=self.max_piece_bytes,
            seed_size=self.num_seeds(sizes),
            num_threads=self.num_threads,
        )
        text = InMemoryText(seeds.lattices, seeds.places, seeds.order, self.num_threads)
        return text, TrainingState.first(seeds.pieces, seeds.scores)

    def models_along(
        self, text: TrainingText, state: TrainingState, sizes: Sequence[int], listen: Listener = _ignore
    ) -> Iterator[UnigramModel]:
        """The models of these sizes, the largest first: update twice, prune, until few enough pieces are left."""
        for size in sorted(set(sizes), reverse=True):
            wanted = int(HEADROOM * size)
            while True:
                while state.num_updates < NUM_SUB_ITERATIONS:
                    expected = text.expectation(state)
                    state = state.updated(expected, *maximization(expected, state.is_byte))
                    listen(state)
                if state.num_pieces <= wanted:
                    break
                losses = text.removal_losses(state)
                num_kept = max(wanted, int(SHRINKING_FACTOR * state.num_pieces))
                state = state.pruned(kept_by_loss(losses, num_kept, wanted))
                listen(state)
            yield finalize(state, size, text.num_bytes)


def finalize(state: TrainingState, vocab_size: int, num_bytes: int) -> UnigramModel:
    """The bytes and the most probable of the other pieces, `vocab_size` in all, their probabilities summing to one."""
    log_probs, is_byte = state.log_probs, state.is_byte
    longer = np.flatnonzero(~is_byte)
    # The pieces' numbers follow a total order, so a stable sort settles ties.
    best = longer[np.argsort(-log_probs[longer], kind="stable")][: vocab_size - int(is_byte.sum())]
    chosen = np.concatenate([np.flatnonzero(is_byte), best])
    pieces = state.pieces.take(pa.array(state.numbers[chosen]))
    order = order_by_bytes(pieces)
    return UnigramModel(
        pieces=pieces.take(pa.array(order)),
        log_probs=log_normalized(log_probs[chosen[order]]),
        num_models=np.ones(len(order), np.int64),
        num_bytes=num_bytes,
        objective=state.objective,
    )


def _check(counts: PretokenCounts, sizes: Sequence[int]) -> None:
    if not sizes:
        raise TokenizerError("no sizes are named: name one vocabulary size at least")
    if len(counts.pretokens) == 0:
        raise EmptyCorpusError("cannot train a tokenizer on no text: every text of this chunk is empty")
    num_distinct = len(counts.distinct_bytes())
    if min(sizes) < num_distinct:
        raise TokenizerError(
            f"vocab_size is {min(sizes)}, but {num_distinct} different bytes occur and each must be a piece: "
            f"ask for {num_distinct} or more"
        )


def _saving(checkpoint: str | Path, mark: str, listen: Listener) -> Listener:
    def save_and_notify(state: TrainingState) -> None:
        save_state(checkpoint, mark, state)
        listen(state)

    return save_and_notify
